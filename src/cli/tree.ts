import type { BudgetView, RunView } from '../http/views/run.ts'
import type { SessionView } from '../http/views/session.ts'
import { count, money, oneLine, plural, table } from './text.ts'

const WIDEST_AGENT = 40

/** The sessions of a run as a tree: each with its own tokens and cost, and the run's total below. */
export function treeLines(run: RunView, sessions: readonly SessionView[]): string[] {
  const header = ['session', 'kind', 'status', 'calls', 'input', 'output', 'cost']
  const rows = inOrder(sessions).map(({ session: s, branch }) => [
    branch + agentName(s),
    s.kind,
    statusText(s),
    count(s.usage.calls),
    count(s.usage.inputTokens),
    count(s.usage.outputTokens),
    s.usage.calls === 0 ? '-' : money(s),
  ])
  const total = [
    plural(sessions.length, 'session'),
    '',
    run.status,
    count(run.usage.calls),
    count(run.usage.inputTokens),
    count(run.usage.outputTokens),
    money(run),
  ]
  const lines = table([header, ...rows, total], [3, 4, 5, 6])
  const rule = '-'.repeat(Math.max(...lines.map((l) => [...l].length)))
  return [lines[0]!, rule, ...lines.slice(1, -1), rule, lines.at(-1)!]
}

/** What a total does not show by itself. */
export function remarks(run: RunView): string[] {
  const lines: string[] = []
  if (run.waste.calls > 0)
    lines.push(`of it waste: ${plural(run.waste.calls, 'call')}, ${money(run.waste)} (failed or duplicate)`)
  if (run.unknown.calls > 0)
    lines.push(`beside it unknown: ${plural(run.unknown.calls, 'call')}, at most ${money(run.unknown)}`)
  if (run.unpricedCalls > 0)
    lines.push(`${plural(run.unpricedCalls, 'call')} without a known price: more was spent than the cost says`)
  if (run.budget) lines.push(budgetLine(run, run.budget))
  if (run.error) lines.push(`error: ${oneLine(`${run.error.code}: ${run.error.message}`, 400)}`)
  return lines
}

const amount = (usd: string | null): string => (usd === null ? 'not known' : `$${usd}`)

/** `budget: $1, spent $0.7, unknown $0, held $0.2, available $0.1; at most 5,000 tokens` */
function budgetLine(run: RunView, { usd, tokens, heldUsd, availableUsd }: BudgetView): string {
  const parts = [
    `$${usd}`,
    `spent ${money(run)}`,
    `unknown ${amount(run.unknown.costUsd)}`,
    `held ${amount(heldUsd)}`,
    `available ${amount(availableUsd)}`,
  ]
  const ofTokens = tokens === null ? [] : [`at most ${count(tokens)} tokens`]
  return `budget: ${[...(usd === null ? [] : [parts.join(', ')]), ...ofTokens].join('; ')}`
}

/** Sessions that failed, at most: each may have its own reason. */
const MOST_REASONS = 10

/** Why sessions below the root have failed or were cancelled. The run tells of its root, and a list of its tasks. */
export function whyEnded(run: RunView, sessions: readonly SessionView[]): string[] {
  const ended = inOrder(sessions)
    .map(({ session }) => session)
    .filter((s) => s.error !== null && s.kind !== 'root' && !(s.kind === 'task' && run.tasks !== null))
  const lines = ended
    .slice(0, MOST_REASONS)
    .map((s) => `${agentName(s)} (${s.sessionId.slice(0, 6)}): ${oneLine(s.error!.message, 200)}`)
  const more = ended.length - lines.length
  return more > 0 ? [...lines, `and ${count(more)} more`] : lines
}

const statusText = (s: SessionView): string =>
  s.stopReason !== null && s.stopReason !== 'end_turn' ? `${s.status} (${s.stopReason})` : s.status

export const agentName = (s: SessionView): string => oneLine(s.agent ?? '(list of tasks)', WIDEST_AGENT)

/** Parents before their children, children in their order; `branch` is what is drawn before each. */
export function inOrder(sessions: readonly SessionView[]): { session: SessionView; branch: string }[] {
  const ids = new Set(sessions.map((s) => s.sessionId))
  const children = Map.groupBy(sessions, (s) =>
    s.parentSessionId !== null && ids.has(s.parentSessionId) ? s.parentSessionId : null,
  )
  const lines: { session: SessionView; branch: string }[] = []
  const visit = (parent: string | null, indent: string) => {
    const list = (children.get(parent) ?? []).toSorted((a, b) => a.ordinal - b.ordinal)
    list.forEach((session, i) => {
      const last = i === list.length - 1
      lines.push({ session, branch: parent === null ? '' : `${indent}${last ? '└─ ' : '├─ '}` })
      visit(session.sessionId, parent === null ? '' : `${indent}${last ? '   ' : '│  '}`)
    })
  }
  visit(null, '')
  return lines
}
