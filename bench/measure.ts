/** One run on a fresh meter: what it took of the table, and what came of it. */
import { createClient } from '../src/cli/client.ts'
import { waitForEnd } from '../src/cli/follow.ts'
import type { Io } from '../src/cli/io.ts'
import type { RunView } from '../src/http/views/run.ts'
import type { Embedded } from '../src/local/embedded.ts'
import type { Meter } from '../src/store/metered-table.ts'

export interface Measured {
  readonly run: RunView
  readonly requests: number
  readonly meter: Meter
  readonly cpuMs: number
}

const io: Pick<Io, 'interrupted' | 'sleep'> = {
  interrupted: new AbortController().signal,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
}

/** @param body what `POST /v1/runs` takes */
export async function measure(embedded: Embedded, body: object): Promise<Measured> {
  embedded.meter.reset()
  const cpu = process.cpuUsage()
  const client = createClient(embedded.fetch, { baseUrl: 'http://localhost' })
  const started = await client.post<RunView>('/v1/runs', body)
  // no looks while it runs: they would be counted
  await embedded.invoker.drain()
  const meter = embedded.meter.snapshot()
  const { user, system } = process.cpuUsage(cpu)
  const run = await waitForEnd(io as Io, client, started.runId)
  if (!run) throw new Error(`the run ${started.runId} was interrupted`)
  return {
    run,
    requests: meter.gets + meter.puts + meter.updates + meter.queries,
    meter,
    cpuMs: Math.round((user + system) / 1000),
  }
}
