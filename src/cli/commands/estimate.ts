import type { EstimateView } from '../../http/views/estimate.ts'
import { type Arguments, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { EXIT, type ExitCode, type Io } from '../io.ts'
import { readStart, START_NAMES, START_OPTIONS } from '../start-body.ts'
import { count, indented, oneLine, plural, printable, table } from '../text.ts'

export const estimate: Command = {
  usage: 'estimate TEAM [INPUT] [--agent A] [--tasks FILE] [--budget USD] [--tag NAME=VALUE]… [--json]',
  summary: 'the least and the most that a run may cost, before it starts; nothing is started or written',
  run: (io, argv) => estimateStart(io, readArguments(argv, START_OPTIONS, START_NAMES)),
}

/** What `run --dry-run` does, too. */
export async function estimateStart(io: Io, args: Arguments): Promise<ExitCode> {
  const { send, connect } = await readStart(io, args)
  return withConnection(io, args, { ...connect, work: false, books: 'none' }, async ({ client }) => {
    const found = await send<EstimateView>(client, '/v1/runs?dryRun=true')
    if (args.flag('json')) io.out(indented(found))
    else printEstimate(io, found)
    return EXIT.ok
  })
}

function printEstimate(io: Io, e: EstimateView): void {
  const what = e.tasks === null ? `first agent ${oneLine(e.agent ?? '', 40)}` : plural(e.tasks, 'task')
  io.out(`team ${printable(e.team)}, ${what}, prices as of ${e.at}`)
  io.out('')
  for (const line of table([TITLES, ...e.agents.map(agentRow)], [2, 3, 5, 6, 7])) io.out(line)
  io.out('')
  const sums = [
    ['at least', amount(e.least.usd), `${count(e.least.tokens)} tokens`, plural(e.least.calls, 'call')],
    [
      'at most',
      amount(e.most.usd, 'unbounded'),
      e.most.tokens === null ? 'unbounded' : `${count(e.most.tokens)} tokens`,
    ],
  ]
  if (e.unpriced.length > 0 && e.most.usd === null) sums[1]![1] = 'not known'
  for (const line of table(sums, [1, 2])) io.out(line)
  if (e.unpriced.length > 0) io.out(printable(`no price is known of: ${e.unpriced.join(', ')}`))
  if (e.budget) io.out(budgetLine(e.budget))
  for (const [title, how] of [
    ['The least:', e.least.how],
    ['The most:', e.most.how],
  ] as const) {
    io.out('')
    io.out(title)
    for (const line of how) io.out(printable(`- ${line}`))
  }
}

const TITLES = ['agent', 'model', 'input', 'output', 'price from', 'first calls', 'each holds', 'output cap']

const agentRow = (a: EstimateView['agents'][number]): string[] => [
  oneLine(a.agent, 40),
  oneLine(a.model, 40),
  a.price ? `$${a.price.input}/M` : 'no price',
  a.price ? `$${a.price.output}/M` : 'no price',
  oneLine(a.price?.source ?? '-', 60),
  a.firstCalls ? count(a.firstCalls.count) : '-',
  a.firstCalls ? amount(a.firstCalls.holdUsd, 'no price') : '-',
  count(a.outputCap),
]

const amount = (usd: string | null, otherwise = 'not known'): string => (usd === null ? otherwise : `$${usd}`)

function budgetLine(b: NonNullable<EstimateView['budget']>): string {
  const parts = [...(b.usd === null ? [] : [`$${b.usd}`]), ...(b.tokens === null ? [] : [`${count(b.tokens)} tokens`])]
  const holds = [...(b.holdUsd === null ? [] : [`$${b.holdUsd}`]), `${count(b.holdTokens)} tokens`].join(' and ')
  const covers = {
    whole: `covers a first call, which holds up to ${holds}`,
    shrunk: `covers a first call with an output cap of ${count(b.outputCap ?? 0)} tokens; with its whole one it holds up to ${holds}`,
    no: `does not cover a first call, which holds up to ${holds}: the run would wait for more`,
  }[b.firstCall]
  return `the budget of ${parts.join(' and ')} ${covers}`
}
