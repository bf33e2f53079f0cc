import { awaitsApproval } from '../../domain/approval.ts'
import { rootSessionId } from '../../domain/ids.ts'
import { isTerminal, type SessionHeader, subtreeBooks, subtreeSessions } from '../../domain/session.ts'
import { findAgent, modelName, type TeamDefinition } from '../../domain/team.ts'
import { type Books, booksOf, known } from '../../domain/usage.ts'
import type { Answer, session } from '../shapes.ts'
import { sessionAsOf } from './as-of.ts'
import { figuresView, time, timeOrNull } from './figures.ts'
import { treeBooks } from './run.ts'

/** A session as the API shows it. Groups are hidden: their members stand under the root. */
export type SessionView = Answer<typeof session>
export type SubtreeView = SessionView['subtree']

export interface SessionTexts {
  readonly task: string | null
  readonly expectedOutput?: string
  readonly output: string | null
}

export const previews = (h: SessionHeader): SessionTexts => ({ task: h.taskPreview, output: h.outputPreview })

/** Whether a session's subtree can be told from its own header: its children have settled, or it never had one. */
export const subtreeIsSettled = (h: SessionHeader): boolean => isTerminal(h) || h.next === 0

export function sessionView(
  h: SessionHeader,
  options: {
    team: TeamDefinition
    texts: SessionTexts
    leaseMs: number
    approvals?: SessionView['approvals']
    /** headers of the whole run: needed for a session whose subtree has not settled */
    all?: readonly SessionHeader[]
  },
): SessionView {
  if (h.kind === 'group') throw new Error('a group is not shown')
  const inList = h.kind === 'task'
  return {
    sessionId: h.sessionId,
    runId: h.runId,
    parentSessionId: inList ? rootSessionId(h.runId) : h.parentId,
    kind: h.kind,
    ordinal: inList ? h.via.index : h.ordinal,
    agent: h.agent,
    model: modelOf(options.team, h.agent),
    ...options.texts,
    status: h.status,
    stopReason: h.stopReason ?? (awaitsApproval(h) ? 'approval' : null),
    error: h.error,
    approvals: options.approvals ?? null,
    attempt: h.attempt,
    depth: h.depth,
    ...figuresView(known(booksOf(h.rows))),
    subtree: subtreeView(h, options.all),
    createdAt: time(h.createdAt),
    startedAt: timeOrNull(h.startedAt),
    asOf: time(sessionAsOf(h, options.leaseMs)),
    finishedAt: timeOrNull(h.finishedAt),
  }
}

/** `provider/model` of an agent, as the books name it. */
export function modelOf(team: TeamDefinition, agent: string | null): string | null {
  const key = agent === null ? undefined : findAgent(team, agent)?.model
  return key === undefined ? null : modelName(team, key)
}

function subtreeView(h: SessionHeader, all: readonly SessionHeader[] | undefined): SubtreeView {
  if (all && !subtreeIsSettled(h)) {
    const tree = subtreeOf(h, all)
    return subtreeFigures(treeBooks(tree), tree.filter((s) => s.kind !== 'group').length)
  }
  return subtreeFigures(subtreeBooks(h), subtreeSessions(h))
}

const subtreeFigures = (books: Books, sessions: number): SubtreeView => ({ ...figuresView(known(books)), sessions })

/** A session and all below it, groups included. */
function subtreeOf(h: SessionHeader, all: readonly SessionHeader[]): SessionHeader[] {
  const byParent = Map.groupBy(all, (s) => s.parentId)
  const tree = [h]
  for (let i = 0; i < tree.length; i++) tree.push(...(byParent.get(tree[i]!.sessionId) ?? []))
  return tree
}
