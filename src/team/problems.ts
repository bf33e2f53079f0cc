import type { LineCounter } from 'yaml'

/** One thing that is wrong with a team file. Lines and columns count from 1. */
export interface Problem {
  readonly severity: 'error' | 'warning'
  readonly file: string
  readonly line: number
  readonly column: number
  /** JSON pointer into the file, such as `/agents/root/model`; empty: the file as a whole */
  readonly path: string
  readonly message: string
}

/** Where something stands in the text. */
export interface Place {
  readonly path: string
  /** in characters from the start of the text */
  readonly offset: number
}

/** Collects problems and turns offsets into lines and columns. */
export class Problems {
  readonly #file: string
  readonly #lines: LineCounter
  readonly #lenient: boolean
  readonly #found: Problem[] = []

  constructor(file: string, lines: LineCounter, lenient: boolean) {
    this.#file = file
    this.#lines = lines
    this.#lenient = lenient
  }

  error(at: Place, message: string): void {
    this.#add('error', at, message)
  }

  warning(at: Place, message: string): void {
    this.#add('warning', at, message)
  }

  /** Something that docker-agent knows and that is not done here: leniently it is left out with a warning. */
  unsupported(at: Place, message: string): void {
    this.#add(this.#lenient ? 'warning' : 'error', at, this.#lenient ? `${message}; it is left out` : message)
  }

  /** Whether what is not done here is left out with a warning. */
  get lenient(): boolean {
    return this.#lenient
  }

  get failed(): boolean {
    return this.#found.some((p) => p.severity === 'error')
  }

  /** In the order of the text. */
  list(): Problem[] {
    return this.#found.toSorted((a, b) => a.line - b.line || a.column - b.column)
  }

  #add(severity: Problem['severity'], at: Place, message: string): void {
    const { line, col } = this.#lines.linePos(at.offset)
    // an empty text has no first line in the counter
    this.#found.push({ severity, file: this.#file, line: line || 1, column: col || 1, path: at.path, message })
  }
}

/** `file:line:column: error: message`, one per line, in the order given. */
export const formatProblems = (problems: readonly Problem[]): string =>
  problems.map((p) => `${p.file}:${p.line}:${p.column}: ${p.severity}: ${p.message}`).join('\n')

/** `/agents/root/toolsets/0/type` → `agents.root.toolsets[0].type`, as messages name a place. */
export const dotted = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) && path ? `${path}[${part}]` : path ? `${path}.${part}` : part), '')

/** One more step of a JSON pointer. */
export const step = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
