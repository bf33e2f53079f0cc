/** The pages of the documentation, and what can be taken out of them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export interface Page {
  /** from the root of the project: `docs/design.md` */
  readonly path: string
  readonly text: string
}

export const PAGES: readonly Page[] = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((f) => `docs/${f}`)]
  .filter((path) => path.endsWith('.md'))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

export function page(path: string): Page {
  const found = PAGES.find((p) => p.path === path)
  if (!found) throw new Error(`there is no page ${path}`)
  return found
}

export interface Block {
  readonly language: string
  readonly text: string
  /** number of its first line in the page */
  readonly line: number
}

/** Fenced blocks, in order. */
export function blocks({ text }: Page): Block[] {
  const found: Block[] = []
  let open: { language: string; line: number; lines: string[] } | undefined
  for (const [i, line] of text.split('\n').entries()) {
    const fence = /^```(\w*)\s*$/.exec(line)
    if (!fence) open?.lines.push(line)
    else if (!open) open = { language: fence[1]!, line: i + 2, lines: [] }
    else {
      found.push({ language: open.language, line: open.line, text: open.lines.join('\n') })
      open = undefined
    }
  }
  if (open) throw new Error(`a block that begins in line ${open.line - 1} has no end`)
  return found
}

/** What stands in backticks outside of fenced blocks. */
export const codeSpans = ({ text }: Page): string[] =>
  [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map((m) => m[1]!)

/** The rows of the table whose head begins with these cells. */
export function table(of: Page, ...head: readonly string[]): string[][] {
  const lines = of.text.split('\n')
  const at = lines.findIndex((line) => head.every((cell, i) => cellsOf(line)[i] === cell))
  if (at < 0) throw new Error(`${of.path} has no table with the head ${head.join(' | ')}`)
  const rows: string[][] = []
  for (const line of lines.slice(at + 2)) {
    if (!line.startsWith('|')) break
    rows.push(cellsOf(line))
  }
  return rows
}

const cellsOf = (line: string): string[] =>
  line.startsWith('|')
    ? line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim())
    : []

/** The one thing in backticks in a cell. */
export const code = (cell: string): string => /^`([^`]+)`$/.exec(cell)?.[1] ?? cell
