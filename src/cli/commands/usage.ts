import type { FiguresView } from '../../http/views/figures.ts'
import type { SpendFigures, SpendReport } from '../../http/views/report.ts'
import type { UsageReport } from '../../http/views/usage.ts'
import type { Client } from '../client.ts'
import { type Arguments, CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { runPath } from '../follow.ts'
import { EXIT, type Io, UsageError } from '../io.ts'
import { count, indented, money, oneLine, plural, printable, table } from '../text.ts'

const REPORT = { from: { type: 'string' }, to: { type: 'string' }, 'group-by': { type: 'string' } } as const

export const usage: Command = {
  usage: 'usage [RUN] [--from DAY] [--to DAY] [--group-by team,agent,model,outcome,day,tag:NAME] [--csv] [--json]',
  summary: 'tokens and cost of a run by agent, model and outcome; without RUN, of all finished runs of some days',
  async run(io, argv) {
    const args = readArguments(argv, { ...CONNECTION, ...REPORT, csv: { type: 'boolean' } }, ['[RUN]'])
    const [runId] = args.positionals
    if (runId !== undefined && [...Object.keys(REPORT), 'csv'].some((name) => args.text(name) !== undefined))
      throw new UsageError('--from, --to, --group-by and --csv are for the report over all runs: leave RUN out.')
    if (args.flag('csv') && args.flag('json')) throw new UsageError('Take either --csv or --json, not both.')
    await withConnection(io, args, { work: false, teams: false }, ({ client }) =>
      runId === undefined ? report(io, client, args) : ofRun(io, client, runId, args),
    )
    return EXIT.ok
  },
}

async function ofRun(io: Io, client: Client, runId: string, args: Arguments): Promise<void> {
  const books = await client.get<UsageReport>(`${runPath(runId)}/usage`)
  if (args.flag('json')) io.out(indented(books))
  else printBooks(io, books)
}

function printBooks(io: Io, books: UsageReport): void {
  const row = (name: string, f: FiguresView, indent = '') => [indent + oneLine(name, 60), ...cells(f)]
  const part = (title: string, figures: { readonly [name: string]: FiguresView }) => [
    [title],
    ...Object.entries(figures).map(([name, f]) => row(name, f, '  ')),
  ]
  const rows = [
    ['', ...TITLES],
    row('total', books.total),
    ...part('by agent', books.byAgent),
    ...part('by model', books.byModel),
    ...part('by outcome', books.byOutcome),
  ]
  for (const line of table(rows, [1, 2, 3, 4])) io.out(line)
}

async function report(io: Io, client: Client, args: Arguments): Promise<void> {
  const query = new URLSearchParams()
  for (const [option, parameter] of [
    ['from', 'from'],
    ['to', 'to'],
    ['group-by', 'groupBy'],
  ] as const) {
    const value = args.text(option)
    if (value !== undefined) query.set(parameter, value)
  }
  if (args.flag('csv')) {
    query.set('format', 'csv')
    const text = await client.text(`/v1/usage?${query}`, 'text/csv')
    io.out(printable(text.trimEnd()))
    return
  }
  const found = await client.get<SpendReport>(`/v1/usage?${query}`)
  if (args.flag('json')) io.out(indented(found))
  else printReport(io, found)
}

function printReport(io: Io, found: SpendReport): void {
  const { from, to, groupBy, total, rows } = found
  io.out(`finished rounds, ${from === to ? from : `${from} to ${to}`} (UTC)`)
  const names = groupBy.length > 0 ? groupBy : ['']
  const width = names.length
  const line = (values: readonly string[], f: SpendFigures) => [
    ...names.map((_, i) => oneLine(values[i] ?? '', 60)),
    // of calls whose answer is not known there are bounds alone
    ...cells(f.usage.calls === 0 && f.unknown.calls > 0 ? f.unknown : f),
  ]
  const lines = [
    [...names.map((name) => oneLine(name, 60)), ...TITLES],
    ...(groupBy.length > 0 ? rows : []).map((row) =>
      line(
        groupBy.map((name) => row.group[name] ?? '-'),
        row,
      ),
    ),
    line(['total'], total),
  ]
  const right = [width, width + 1, width + 2, width + 3]
  for (const text of table(lines, right)) io.out(text)
  if (total.unknown.calls > 0)
    io.out(`beside it unknown: ${plural(total.unknown.calls, 'call')}, at most ${money(total.unknown)}`)
  if (total.unpricedCalls > 0)
    io.out(`${plural(total.unpricedCalls, 'call')} without a known price: more was spent than the cost says`)
}

const TITLES = ['calls', 'input', 'output', 'cost']
const cells = (f: FiguresView): string[] => [
  count(f.usage.calls),
  count(f.usage.inputTokens),
  count(f.usage.outputTokens),
  money(f),
]
