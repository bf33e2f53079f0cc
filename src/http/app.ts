import { type Context, Hono } from 'hono'
import { isPrincipal } from '../domain/approval.ts'
import { SubledgerError } from '../domain/errors.ts'
import { TENANT } from '../domain/ids.ts'
import type { ApiContext, Handler, Route } from './api.ts'
import { approvalRoutes } from './approvals.ts'
import { auditRoutes } from './audit.ts'
import type { Admitted } from './auth/caller.ts'
import { type Scope, scopeOf } from './auth/scopes.ts'
import { bookRoutes } from './calls.ts'
import { eventRoutes } from './events/stream.ts'
import { problemResponse } from './problem.ts'
import { runRoutes } from './runs.ts'
import { scheduleRoutes } from './schedules.ts'
import { sessionRoutes } from './sessions.ts'
import { teamRoutes } from './teams.ts'
import { usageReportRoutes } from './usage-report.ts'

export type { ApiContext } from './api.ts'

export interface AppOptions {
  /**
   * Whose data the request is about, and who asks where that is known. Called for every route that holds data, before anything else is done.
   * @param env what the platform's adapter hands on beside the request (on Lambda: the event)
   * @param scope what the caller must be allowed
   * @throws SubledgerError unauthorized, forbidden or keys_unavailable
   */
  readonly tenantOf: (request: Request, env: unknown, scope: Scope) => string | Admitted | Promise<string | Admitted>
  /** `WWW-Authenticate` of a 401 */
  readonly challenge?: string
  /** How many streams of events may be open at once; left out: the platform cannot stream, and answers are given whole. */
  readonly streams?: number
  /** Looks at every request before anything else; throws SubledgerError to refuse it. */
  readonly guard?: (request: Request) => void
}

/** Paths that hold no data and need no tenant. */
const PUBLIC: readonly Route[] = [
  { path: '/v1/health', methods: { GET: (c) => c.json({ status: 'ok' }) } },
  { path: '/v1/openapi.json', methods: { GET: openApi } },
  {
    path: '/',
    methods: {
      GET: (c) => c.text('Subledger. This version has no console; the API is at /v1, and GET /v1/teams is a start.\n'),
    },
  },
]

/** Made when somebody asks for it, once: no request else needs it. */
async function openApi(c: Context): Promise<Response> {
  documentText ??= import('./openapi/document.ts').then(({ openApiDocument }) => JSON.stringify(openApiDocument()))
  c.header('Content-Type', 'application/json')
  return c.body(await documentText)
}
let documentText: Promise<string> | undefined

/** The HTTP API: a function from Request to Response. */
export function createApp(ctx: ApiContext, options: AppOptions): Hono {
  const app = new Hono()
  app.use(async (c, next) => {
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
    options.guard?.(c.req.raw)
    await next()
  })
  app.onError((e, c) => {
    if (options.challenge && SubledgerError.is(e) && e.code === 'unauthorized')
      c.header('WWW-Authenticate', options.challenge)
    return problemResponse(c, e, ctx.log)
  })
  app.notFound((c) =>
    problemResponse(
      c,
      new SubledgerError('not_found', `There is nothing at ${c.req.path}. The API is under /v1.`),
      ctx.log,
    ),
  )

  const admitted = async (
    request: Request,
    env: unknown,
    scope: Scope,
  ): Promise<[tenant: string, by: string | null]> => {
    const found = await options.tenantOf(request, env, scope)
    const { tenant, name } = typeof found === 'string' ? { tenant: found, name: null } : found
    if (!TENANT.test(tenant)) throw new Error('the tenant of the request is not a valid tenant name')
    if (name !== null && !isPrincipal(name)) throw new Error('who makes the request has no name that can be stored')
    return [tenant, name]
  }
  const routes = [
    ...runRoutes(ctx),
    ...sessionRoutes(ctx),
    ...approvalRoutes(ctx),
    ...bookRoutes(ctx),
    ...eventRoutes(ctx, { streams: options.streams }),
    ...auditRoutes(ctx),
    ...usageReportRoutes(ctx),
    ...scheduleRoutes(ctx),
    ...teamRoutes(ctx),
  ]
  for (const [path, methods] of byPath(routes)) {
    for (const [method, handler] of methods) {
      const scope = scopeOf(method, path)
      app.on(method, path, async (c) => handler(c, ...(await admitted(c.req.raw, c.env, scope))))
    }
    refuseOthers(app, path, [...methods.keys()])
  }
  for (const { path, methods } of PUBLIC) {
    // whoever watches may add what he likes to get past a cache
    for (const [method, handler] of Object.entries(methods)) app.on(method, path, (c) => handler(c, '', null))
    refuseOthers(app, path, Object.keys(methods))
  }
  return app
}

function byPath(routes: readonly Route[]): Map<string, Map<string, Handler>> {
  const paths = new Map<string, Map<string, Handler>>()
  for (const { path, methods } of routes) {
    const known = paths.get(path) ?? new Map<string, Handler>()
    for (const [method, handler] of Object.entries(methods)) known.set(method, handler)
    paths.set(path, known)
  }
  return paths
}

function refuseOthers(app: Hono, path: string, methods: readonly string[]): void {
  const allow = methods.includes('GET') ? [...methods, 'HEAD'] : methods
  app.all(path, (c) => {
    c.header('Allow', allow.join(', '))
    throw new SubledgerError('method_not_allowed', `${c.req.method} is not allowed here; use ${allow.join(' or ')}.`)
  })
}
