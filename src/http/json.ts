import { SubledgerError } from '../domain/errors.ts'

/** Levels of objects and arrays in a body. The deepest valid one has four. */
export const MAX_JSON_DEPTH = 32

/**
 * Reads JSON text strictly: `JSON.parse` has no bound of depth, takes the last of duplicate keys in silence and does not
 * always say where the text is wrong. Keys that occur twice and `__proto__` are refused.
 * @throws SubledgerError bad_json, with line and column
 */
export function parseJson(text: string): unknown {
  return new Parser(text).document()
}

/** Numbers of objects that were read here of which a double has not every digit, or not in this form. */
const written = new WeakMap<object, Map<string, string>>()

/** The number under a key of an object that `parseJson` made, as it stood in the text; undefined: it is no number. */
export function writtenNumber(object: { readonly [key: string]: unknown }, key: string): string | undefined {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return typeof value === 'number' ? (written.get(object)?.get(key) ?? String(value)) : undefined
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORDS: readonly [string, unknown][] = [
  ['true', true],
  ['false', false],
  ['null', null],
]

function keep(object: object, key: string, value: number, text: string): void {
  if (String(value) === text) return
  const texts = written.get(object) ?? new Map<string, string>()
  written.set(object, texts.set(key, text))
}

class Parser {
  private readonly text: string
  private at = 0

  constructor(text: string) {
    this.text = text
  }

  document(): unknown {
    const value = this.value(0)
    this.space()
    if (this.at < this.text.length) this.fail('nothing more is expected')
    return value
  }

  private value(depth: number): unknown {
    this.space()
    const c = this.text[this.at]
    if (c === '{' || c === '[') {
      if (depth >= MAX_JSON_DEPTH) this.fail(`the value is nested deeper than ${MAX_JSON_DEPTH} levels`)
      return c === '{' ? this.object(depth + 1) : this.array(depth + 1)
    }
    if (c === '"') return this.string()
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length
        return value
      }
    }
    NUMBER.lastIndex = this.at
    const number = NUMBER.exec(this.text)
    if (!number) this.fail('a value is expected')
    this.at += number[0].length
    return Number(number[0])
  }

  private object(depth: number): { [key: string]: unknown } {
    const out: { [key: string]: unknown } = {}
    this.at++
    if (this.take('}')) return out
    do {
      this.space()
      const start = this.at
      if (this.text[start] !== '"') this.fail('a key in double quotes is expected')
      const key = this.string()
      if (key === '__proto__') this.fail('the key "__proto__" is not accepted', start)
      if (Object.hasOwn(out, key)) this.fail('the key is there twice', start)
      if (!this.take(':')) this.fail('":" is expected')
      this.space()
      const from = this.at
      const value = this.value(depth)
      out[key] = value
      if (typeof value === 'number') keep(out, key, value, this.text.slice(from, this.at))
    } while (this.take(','))
    if (!this.take('}')) this.fail('"," or "}" is expected')
    return out
  }

  private array(depth: number): unknown[] {
    const out: unknown[] = []
    this.at++
    if (this.take(']')) return out
    do out.push(this.value(depth))
    while (this.take(','))
    if (!this.take(']')) this.fail('"," or "]" is expected')
    return out
  }

  private string(): string {
    const start = this.at
    let end = start + 1
    for (; ; end++) {
      const c = this.text.charCodeAt(end)
      if (Number.isNaN(c)) this.fail('the string has no end', start)
      if (c < 0x20) this.fail('a control character in a string must be escaped', end)
      if (c === 0x22) break
      if (c === 0x5c) end++
    }
    this.at = end + 1
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string
    } catch {
      this.fail('the string has an escape that JSON does not know', start)
    }
  }

  private take(c: string): boolean {
    this.space()
    if (this.text[this.at] !== c) return false
    this.at++
    return true
  }

  private space(): void {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at++
  }

  private fail(what: string, at = this.at): never {
    const before = this.text.slice(0, at).split('\n')
    const end = at >= this.text.length ? ', where the text ends' : ''
    throw new SubledgerError(
      'bad_json',
      `The body is not valid JSON: ${what} at line ${before.length}, column ${before.at(-1)!.length + 1}${end}.`,
    )
  }
}
