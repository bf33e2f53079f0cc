import type { AuditReport } from '../../engine/audit.ts'
import type { ReceiptsView } from '../../http/audit.ts'
import type { CallView } from '../../http/views/call.ts'
import type { Client } from '../client.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { runPath } from '../follow.ts'
import { EXIT, type Io, UsageError } from '../io.ts'
import { type FileReceipt, readReceipts } from '../receipts-file.ts'
import { count, indented, plural, printable } from '../text.ts'

/** The API takes so many receipts at once. They go in one request, so that one that fits two calls is seen as such. */
const MOST_RECEIPTS = 1_000
/** An export covers all that an account has done: what is nowhere near an unknown call is not sent. */
const NEAR_MS = 60_000

export const audit: Command = {
  usage: 'audit RUN [--receipts FILE] [--json]',
  summary: "recompute a run's books from its calls up; with receipts, settle its unknown calls first",
  async run(io, argv) {
    const args = readArguments(argv, { ...CONNECTION, receipts: { type: 'string' } }, ['RUN'])
    const [runId] = args.positionals as [string]
    const file = args.text('receipts')
    const receipts = file === undefined ? undefined : await readReceipts(file)
    return withConnection(io, args, { work: false, teams: false }, async ({ client }) => {
      const settled = receipts && (await settle(client, runId, receipts))
      const report = await client.get<AuditReport>(`${runPath(runId)}/audit`)
      if (args.flag('json')) io.out(indented(settled ? { ...report, receipts: settled } : report))
      else {
        if (settled) printReceipts(io, settled)
        printAudit(io, report)
      }
      return report.balanced ? EXIT.ok : EXIT.failed
    })
  },
}

async function settle(client: Client, runId: string, receipts: readonly FileReceipt[]): Promise<ReceiptsView> {
  const calls = await client.all<CallView>(`${runPath(runId)}/calls`, 'calls')
  const unknown = calls.filter((c) => c.outcome === 'unknown')
  const booked = new Set(calls.map((c) => c.responseId))
  // a receipt of such a call is not one of an unknown call: it has to be there for that to be seen
  const beside = calls.filter((c) => c.outcome !== 'unknown' && unknown.some((u) => overlap(c, u)))
  const isOfThisRun = (r: FileReceipt): boolean => {
    if (r.sessionId !== undefined) return calls.some((c) => c.sessionId === r.sessionId)
    if (r.responseId !== undefined && booked.has(r.responseId)) return false
    return unknown.some((c) => isNear(r, c)) || beside.some((c) => isNear(r, c) && hasTokens(r, c))
  }
  const ours = receipts.filter(isOfThisRun)
  if (ours.length === 0) return { settled: 0, receipts: [] }
  if (ours.length > MOST_RECEIPTS)
    throw new UsageError(
      `${count(ours.length)} receipts could be of this run's unknown calls, and at most ${count(MOST_RECEIPTS)} are taken: name calls by sessionId and turn.`,
    )
  return client.post<ReceiptsView>(`${runPath(runId)}/receipts`, { receipts: ours })
}

function overlap(a: CallView, b: CallView): boolean {
  const [from, to] = [Date.parse(a.startedAt), Date.parse(b.startedAt)]
  return from <= to + b.durationMs + NEAR_MS && to <= from + a.durationMs + NEAR_MS
}

const hasTokens = (r: FileReceipt, { usage }: CallView): boolean =>
  r.inputTokens === usage.inputTokens && r.outputTokens === usage.outputTokens

function isNear(r: FileReceipt, c: CallView): boolean {
  if (r.createdAt === undefined) return false
  const [at, from] = [Date.parse(r.createdAt), Date.parse(c.startedAt)]
  return at >= from - NEAR_MS && at <= from + c.durationMs + NEAR_MS
}

function printReceipts(io: Io, { settled, receipts }: ReceiptsView): void {
  io.out(`receipts: ${plural(settled, 'unknown call')} settled, ${receipts.length - settled} others`)
  for (const r of receipts) {
    const call = r.sessionId === null ? 'no call' : `call ${r.turn} of session ${r.sessionId}`
    const cost = r.costUsd === null ? '' : ` at $${r.costUsd}`
    io.out(printable(`  ${r.result}: ${call}${cost} (${r.detail})`))
  }
}

function printAudit(io: Io, report: AuditReport): void {
  const { calls, sessions, usageItems } = report.checked
  io.out(
    `run ${report.runId} (${report.status}): ${plural(calls, 'call')}, ${plural(sessions, 'session')}, ${plural(usageItems, 'usage item')} looked at`,
  )
  if (report.live > 0) io.out(`${plural(report.live, 'session')} not ended: what is not final is not compared`)
  for (const d of report.differences) io.out(printable(`  ${d.message}`))
  io.out(report.balanced ? 'balanced' : `NOT BALANCED: ${plural(report.differing, 'difference')}`)
}
