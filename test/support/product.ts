/** `npm start` as a process group of its own: the whole product, over HTTP, on a data folder that outlives it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Product {
  /** `http://127.0.0.1:PORT/v1` */
  readonly api: string
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  get(path: string): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  post(path: string, body: object, expectedStatus?: number): Promise<any>
  /** polls the run until it has ended */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  ended(runId: string): Promise<any>
  output(): string
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<void>
  /** as the kernel would: no time to say good-bye */
  kill(): Promise<void>
}

/** A folder with teams, and a place for data beside it. */
export interface Workplace {
  readonly teams: string
  readonly data: string
  remove(): Promise<void>
}

export async function workplace(teams: { readonly [name: string]: string }): Promise<Workplace> {
  const folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  const place = { teams: join(folder, 'teams'), data: join(folder, 'data') }
  await mkdir(place.teams)
  for (const [name, text] of Object.entries(teams)) await writeFile(join(place.teams, `${name}.yaml`), text)
  return { ...place, remove: () => rm(folder, { recursive: true, force: true }) }
}

export async function startProduct(place: Workplace, env: { readonly [name: string]: string } = {}): Promise<Product> {
  const child = spawn('npm', ['start', '--', '--port', '0', '--teams', place.teams, '--data', place.data], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let text = ''
  const found = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const url = /listens on (http:\/\/127\.0\.0\.1:\d+)/.exec(text)?.[1]
      if (url) found.resolve(url)
    })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  void gone.then(() => found.reject(new Error(`npm start ended before it was ready:\n${text}`)))
  const api = `${await found.promise}/v1`

  const get = async (path: string) => {
    const response = await fetch(`${api}${path}`)
    if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  const end = async (signal: NodeJS.Signals) => {
    signalGroup(child, signal)
    await gone
  }
  return {
    api,
    get,
    async post(path, body, expectedStatus = 202) {
      const response = await fetch(`${api}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const answer = await response.text()
      if (response.status !== expectedStatus) throw new Error(`POST ${path}: ${response.status} ${answer}`)
      return JSON.parse(answer)
    },
    async ended(runId) {
      for (;;) {
        // biome-ignore lint/suspicious/noExplicitAny: an answer of any shape
        const run: any = await get(`/runs/${runId}`)
        if (!['running', 'waiting'].includes(run.status)) return run
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    },
    output: () => text,
    stop: (signal = 'SIGTERM') => end(signal),
    kill: () => end('SIGKILL'),
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
