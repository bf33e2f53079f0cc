/**
 * What a caller may do: `read` looks, `run` starts runs and leads them, `approve` lets a run that waits go on with more
 * rights or money, `admin` deletes, schedules, and may do all the others do.
 */
export const SCOPES = ['read', 'run', 'approve', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

export const allows = (granted: ReadonlySet<Scope>, needed: Scope): boolean =>
  granted.has(needed) || granted.has('admin')

/** Every route that holds data, as the app names it. A route that is missing here keeps the app from being made. */
const ROUTE_SCOPES: { readonly [route: string]: Scope } = {
  'GET /v1/runs': 'read',
  'POST /v1/runs': 'run',
  'GET /v1/runs/:runId': 'read',
  'DELETE /v1/runs/:runId': 'admin',
  'GET /v1/runs/:runId/sessions': 'read',
  'GET /v1/runs/:runId/sessions/:sessionId': 'read',
  'GET /v1/runs/:runId/sessions/:sessionId/messages': 'read',
  'GET /v1/runs/:runId/calls': 'read',
  'GET /v1/runs/:runId/usage': 'read',
  'GET /v1/runs/:runId/audit': 'read',
  'POST /v1/runs/:runId/receipts': 'admin',
  'GET /v1/runs/:runId/events': 'read',
  'POST /v1/runs/:runId/input': 'run',
  'POST /v1/runs/:runId/retry': 'run',
  'POST /v1/runs/:runId/cancel': 'run',
  'PUT /v1/runs/:runId/budget': 'approve',
  'GET /v1/runs/:runId/approvals': 'read',
  'POST /v1/runs/:runId/approvals/:approvalId': 'approve',
  'GET /v1/usage': 'read',
  'GET /v1/schedules': 'read',
  'POST /v1/schedules': 'admin',
  'GET /v1/schedules/:id': 'read',
  'DELETE /v1/schedules/:id': 'admin',
  'GET /v1/teams': 'read',
  'GET /v1/teams/:name': 'read',
  'GET /v1/openapi.json': 'read',
}

/** @throws Error when nobody has said who may use the route */
export function scopeOf(method: string, path: string): Scope {
  const route = `${method} ${path}`
  const scope = Object.hasOwn(ROUTE_SCOPES, route) ? ROUTE_SCOPES[route] : undefined
  if (!scope) throw new Error(`The route ${route} has no scope: say in src/http/auth/scopes.ts who may use it`)
  return scope
}
