import { plainJson } from '../domain/text.ts'

/**
 * Text of models, tools and team files, fit for a terminal: control characters (escape sequences among them) and
 * characters that turn the direction of text are taken out; line breaks and tabs stay.
 */
export const printable = (text: string): string => text.toWellFormed().replaceAll('\r\n', '\n').replace(UNSAFE, '')

// controls but tab and line feed, line and paragraph separators, marks and overrides of direction
const UNSAFE = /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]--[\t\n]]/gv

/** What `--json` prints: no text in it does anything to a terminal. */
export const indented = (value: unknown): string => plainJson(value, undefined, 2)

/** The same as one line of at most `max` characters. */
export function oneLine(text: string, max: number): string {
  const line = printable(text).replace(/\s+/g, ' ').trim()
  const characters = [...line]
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join('')}…`
}

/** Lines with aligned columns. Columns named in `right` are numbers. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, [...cell].length)
  }
  const pad = (cell: string, i: number) => {
    const space = ' '.repeat(widths[i]! - [...cell].length)
    return right.includes(i) ? space + cell : cell + space
  }
  return rows.map((row) => row.map(pad).join('  ').trimEnd())
}

/** `12345` → `12,345` */
export const count = (n: number): string => n.toLocaleString('en-US')

/** What was spent: `$0.0123`; with `+` where calls without a known price are not in it. */
export const money = (f: { readonly costUsd: string; readonly costComplete: boolean }): string =>
  f.costComplete ? `$${f.costUsd}` : f.costUsd === '0' ? 'no price' : `$${f.costUsd}+`

export const plural = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? '' : 's'}`
