/** The world around a command: where it prints, what it is told, and when it is interrupted. */
export interface Io {
  /** prints a line to standard output */
  readonly out: (line: string) => void
  /** prints a line to standard error */
  readonly err: (line: string) => void
  readonly env: { readonly [name: string]: string | undefined }
  /** aborts when the user interrupts */
  readonly interrupted: AbortSignal
  /** resolves after `ms`, or at once when interrupted */
  readonly sleep: (ms: number) => Promise<void>
}

/** Exit codes: what scripts rely on. */
export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Wrong use: told in one line, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
