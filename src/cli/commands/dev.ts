import type { LeftBehind } from '../../local/left-behind.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { checkTeams, dataDir, teamsDir } from '../connect.ts'
import { EXIT, UsageError } from '../io.ts'
import { plural, printable } from '../text.ts'

const DEFAULT_PORT = '4310'

export const dev: Command = {
  usage: 'dev [--port 4310] [--teams DIR] [--data DIR]',
  summary: 'API, workers and sweep on this machine, until interrupted',
  async run(io, argv) {
    const { data, teams } = CONNECTION
    const args = readArguments(argv, { data, teams, port: { type: 'string' } }, [])
    const port = readPort(args.text('port') ?? (io.env.SUBLEDGER_PORT || DEFAULT_PORT))
    await checkTeams(teamsDir(io, args))
    const [{ startLocal }, { createJsonLogger }, { takeOver }, { TENANT }] = await Promise.all([
      import('../../local.ts'),
      import('../../logger.ts'),
      import('../../local/left-behind.ts'),
      import('../../local/embedded.ts'),
    ])
    let left: readonly LeftBehind[] = []
    const local = await startLocal({
      port,
      dataDir: dataDir(io, args),
      teamsDir: teamsDir(io, args),
      env: io.env,
      log: createJsonLogger(io.err),
      async beforeWork(ctx) {
        left = await takeOver(ctx, TENANT)
      },
    })
    io.out(`Subledger listens on ${local.url} (stop with Ctrl-C)`)
    io.out(`  API    ${local.url}/v1   no console in this version`)
    if (local.auth.kind === 'oidc') io.out(`  callers need a token of ${local.auth.issuer}`)
    io.out(`  teams  ${teamsDir(io, args)}   books  ${dataDir(io, args)}`)
    for (const { run, sessions } of left)
      io.out(
        `  run ${run.runId} (team ${printable(run.team)}) was cut off, and goes on: ${plural(sessions, 'session')} taken over`,
      )
    while (!io.interrupted.aborted) await io.sleep(2 ** 30)
    io.out('Stopping. Runs that go on are kept and go on at the next start.')
    io.out('Calls under way have 10 seconds to end; one that is cut off is booked as unknown, and made again.')
    await local.stop()
    return EXIT.ok
  },
}

function readPort(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new UsageError(`"${text}" is not a port: a number from 0 (any free one) to 65535.`)
}
