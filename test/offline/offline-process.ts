import { type ChildProcess, spawn } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

export interface LogLine {
  readonly message: string
  readonly requestId?: string
  readonly sessionId?: string
  readonly function?: string
  readonly delivery?: number
  readonly ok?: boolean
  readonly event?: { readonly sessionId?: string; readonly runId?: string }
}

export interface OfflineProcess {
  readonly api: string
  readonly lambda: string
  /** the lines of JSON that it has written so far */
  lines(): readonly LogLine[]
  /** everything that it has written */
  output(): string
  alive(): boolean
  /** ends it as Ctrl-C would, and resolves with the exit code */
  stop(): Promise<number | null>
}

/** `npm run offline` as a process group of its own. Resolves when it says that it is ready. */
export async function startOffline(env: { readonly [name: string]: string }): Promise<OfflineProcess> {
  const ports = { http: await freePort(), lambda: await freePort() }
  const child = spawn('npm', ['run', 'offline'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, SUBLEDGER_PORT: `${ports.http}`, SUBLEDGER_LAMBDA_PORT: `${ports.lambda}` },
  })
  let text = ''
  let wake = () => {}
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      wake()
    })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const alive = () => child.exitCode === null && child.signalCode === null
  void ended.then(() => wake())
  while (!text.includes('Subledger offline:')) {
    if (!alive()) throw new Error(`npm run offline ended before it was ready:\n${text}`)
    await new Promise<void>((resolve) => (wake = resolve))
  }
  return {
    api: `http://127.0.0.1:${ports.http}/v1`,
    lambda: `http://127.0.0.1:${ports.lambda}`,
    output: () => text,
    lines: () => text.split('\n').flatMap(parse),
    alive,
    async stop() {
      if (alive()) signalGroup(child, 'SIGTERM')
      const last = setTimeout(() => signalGroup(child, 'SIGKILL'), 20_000)
      const code = await ended
      clearTimeout(last)
      return code
    },
  }
}

function parse(line: string): LogLine[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line)] : []
  } catch {
    return [] // a line that is not whole yet
  }
}

/** The group that this process started, and nothing else. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal)
  } catch {
    // it has ended already
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
