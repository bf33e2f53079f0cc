/** Every operation of the API, for its OpenAPI document. A test compares it with the routes that the app has. */
import { ERRORS, type ErrorCode } from '../../domain/errors.ts'
import { receiptsBody } from '../audit.ts'
import { estimate } from '../estimate-shape.ts'
import {
  approvalBody,
  budgetBody,
  createRunBody,
  eventsQuery,
  inputBody,
  listRunsQuery,
  noBody,
  noQuery,
  pageQuery,
  retryBody,
  runQuery,
  startQuery,
} from '../schemas.ts'
import {
  approvals,
  audit,
  books,
  calls,
  health,
  messages,
  receipts,
  run,
  runs,
  session,
  sessions,
  spend,
  team,
  teams,
} from '../shapes.ts'
import { reportQuery } from '../usage-report.ts'
import { type Operation, ok } from './operation.ts'
import { SCHEDULE_OPERATIONS } from './schedule-operations.ts'

const RUN = '/v1/runs/{runId}'
const SESSION = `${RUN}/sessions/{sessionId}`
const accepted = { status: 202, says: 'The run; `Location` is where it is', shape: run, location: true } as const

export const OPERATIONS: readonly Operation[] = [
  {
    method: 'POST',
    path: '/v1/runs',
    id: 'startRun',
    summary: 'Starts a run of a team, from an input or a list of tasks',
    query: startQuery,
    body: createRunBody,
    answer: accepted,
    also: ok(estimate, 'With dryRun=true: what the run may cost. Nothing is started or written'),
    refusals: [
      'unknown_team',
      'bad_team',
      'unknown_agent',
      'unpriced_model',
      'too_many_runs',
      'not_supported',
      'unknown_run',
    ],
  },
  {
    method: 'GET',
    path: '/v1/runs',
    id: 'listRuns',
    summary: 'Runs, newest first',
    query: listRunsQuery,
    answer: ok(runs, 'A page of runs'),
    refusals: [],
  },
  {
    method: 'GET',
    path: RUN,
    id: 'getRun',
    summary: 'A run. With exact=true its figures are summed from its calls now',
    query: runQuery,
    answer: ok(run, 'The run'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: `${RUN}/sessions`,
    id: 'listSessions',
    summary: 'Sessions of a run, in the order of their ids',
    query: pageQuery,
    answer: ok(sessions, 'A page of sessions'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: SESSION,
    id: 'getSession',
    summary: 'A session, with its whole task and output',
    query: noQuery,
    answer: ok(session, 'The session'),
    refusals: ['unknown_run', 'unknown_session'],
  },
  {
    method: 'GET',
    path: `${SESSION}/messages`,
    id: 'listMessages',
    summary: 'The transcript of a session',
    query: pageQuery,
    answer: ok(messages, 'A page of messages'),
    refusals: ['unknown_run', 'unknown_session'],
  },
  {
    method: 'GET',
    path: `${RUN}/calls`,
    id: 'listCalls',
    summary: 'Each model call of a run, waste included',
    query: pageQuery,
    answer: ok(calls, 'A page of calls'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: `${RUN}/usage`,
    id: 'getUsage',
    summary: 'The books of a run, by agent, model and outcome',
    query: noQuery,
    answer: ok(books, 'The books'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: `${RUN}/events`,
    id: 'streamEvents',
    summary: 'What happens in a run, as server-sent events; with `session`, the turns and tool calls of that one too',
    query: eventsQuery,
    resumable: true,
    answer: {
      status: 200,
      says: 'Events, each with an Event as its data; the last one, `end`, has an EndOfEvents',
      type: 'text/event-stream',
    },
    refusals: ['unknown_run', 'unknown_session', 'too_many_streams'],
  },
  {
    method: 'POST',
    path: `${RUN}/input`,
    id: 'addInput',
    summary: 'The conversation of an ended run goes on in a new round',
    query: noQuery,
    body: inputBody,
    answer: accepted,
    refusals: ['unknown_run', 'run_active', 'too_many_runs'],
  },
  {
    method: 'POST',
    path: `${RUN}/retry`,
    id: 'retryRun',
    summary: 'Tries again what an ended run has not completed, in a new round',
    query: noQuery,
    body: retryBody,
    bodyOptional: true,
    answer: accepted,
    refusals: ['unknown_run', 'run_active', 'nothing_to_retry', 'too_many_runs', 'idempotency_mismatch'],
  },
  {
    method: 'PUT',
    path: `${RUN}/budget`,
    id: 'setBudget',
    summary: 'Sets the budget of a run anew, in absolute values; one that waits for money goes on',
    query: noQuery,
    body: budgetBody,
    answer: ok(run, 'The run'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: `${RUN}/approvals`,
    id: 'listApprovals',
    summary: 'Tool calls of a run that somebody was asked about, session by session',
    query: pageQuery,
    answer: ok(approvals, 'A page of approvals'),
    refusals: ['unknown_run'],
  },
  {
    method: 'POST',
    path: `${RUN}/approvals/{approvalId}`,
    id: 'approve',
    summary: 'Approves or denies a tool call that waits for it',
    query: noQuery,
    body: approvalBody,
    answer: accepted,
    refusals: ['unknown_run', 'unknown_approval', 'approval_closed'],
  },
  {
    method: 'POST',
    path: `${RUN}/cancel`,
    id: 'cancelRun',
    summary: 'Stops the whole tree; also answered when the run has ended',
    query: noQuery,
    body: noBody,
    bodyOptional: true,
    answer: accepted,
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: `${RUN}/audit`,
    id: 'auditRun',
    summary: 'Whether the books of a run balance, recomputed from its calls up',
    query: noQuery,
    answer: ok(audit, 'What was looked at, and what differs'),
    refusals: ['unknown_run'],
  },
  {
    method: 'POST',
    path: `${RUN}/receipts`,
    id: 'settleReceipts',
    summary: "Settles calls of unknown outcome by the provider's receipts",
    query: noQuery,
    body: receiptsBody,
    answer: ok(receipts, 'What came of each receipt'),
    refusals: ['unknown_run'],
  },
  {
    method: 'GET',
    path: '/v1/usage',
    id: 'report',
    summary: 'What finished rounds have spent; as CSV with format=csv',
    query: reportQuery,
    answer: { ...ok(spend, 'The report'), csv: true },
    refusals: [],
  },
  {
    method: 'DELETE',
    path: RUN,
    id: 'deleteRun',
    summary: 'Deletes an ended run; its money stays in the reports',
    query: noQuery,
    answer: { status: 204, says: 'It is gone' },
    refusals: ['unknown_run', 'run_active'],
  },
  ...SCHEDULE_OPERATIONS,
  {
    method: 'GET',
    path: '/v1/teams',
    id: 'listTeams',
    summary: 'What can be run',
    query: noQuery,
    answer: ok(teams, 'All teams'),
    refusals: [],
  },
  {
    method: 'GET',
    path: '/v1/teams/{name}',
    id: 'getTeam',
    summary: 'A team: its agents and models, with prices',
    query: noQuery,
    answer: ok(team, 'The team'),
    refusals: ['unknown_team', 'bad_team'],
  },
  {
    method: 'GET',
    path: '/v1/health',
    id: 'health',
    summary: 'Whether the API answers',
    answer: ok(health, 'It does'),
    refusals: [],
    open: true,
  },
  {
    method: 'GET',
    path: '/v1/openapi.json',
    id: 'openapi',
    summary: 'This document',
    answer: { status: 200, says: 'OpenAPI 3.1' },
    refusals: [],
    open: true,
  },
  {
    method: 'GET',
    path: '/',
    id: 'home',
    summary: 'A line of text',
    answer: { status: 200, says: 'A line of text', type: 'text/plain' },
    refusals: [],
    open: true,
  },
]

/** Every code that an operation may be refused with, in the order of ERRORS. */
export function codesOf(operation: Operation): ErrorCode[] {
  const { query, body, open } = operation
  const codes = new Set<ErrorCode>([...operation.refusals, 'forbidden'])
  const add = (...more: ErrorCode[]) => {
    for (const code of more) codes.add(code)
  }
  if (!open) add('unauthorized', 'keys_unavailable')
  if (query) add('bad_request')
  if (query && 'cursor' in query.shape) add('bad_cursor')
  if (body) add('bad_request', 'bad_json', 'too_large', 'unsupported_media_type')
  if (body && operation.method === 'POST' && !operation.bodyOptional) add('idempotency_mismatch')
  if (!open) add('internal', 'throttled')
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}
