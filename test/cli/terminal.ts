/** A terminal that a command prints to, and what it said there. */
import { main } from '../../src/cli/main.ts'

export interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Terminal {
  readonly env?: Record<string, string>
  /** interrupts when a line that fits is printed */
  readonly interruptAt?: RegExp
}

/** Runs a command line in this process. */
export async function say(argv: readonly string[], terminal: Terminal = {}): Promise<Said> {
  const lines = { out: [] as string[], err: [] as string[] }
  const interrupt = new AbortController()
  const print = (to: 'out' | 'err') => (line: string) => {
    lines[to].push(line)
    if (terminal.interruptAt?.test(line)) interrupt.abort()
  }
  const io = {
    out: print('out'),
    err: print('err'),
    env: terminal.env ?? {},
    interrupted: interrupt.signal,
    sleep: (ms: number) =>
      new Promise<void>((resolve) => setTimeout(resolve, interrupt.signal.aborted ? 0 : Math.min(ms, 50))),
  }
  const code = await main(io, argv)
  return { code, out: lines.out.join('\n'), err: lines.err.join('\n') }
}
