import type { APIGatewayProxyEventV2WithIAMAuthorizer, Context } from 'aws-lambda'
import { handle, type LambdaEvent } from 'hono/aws-lambda'
import { once } from '../src/compose.ts'
import { composeStarter } from '../src/compose-starter.ts'
import { readConfig } from '../src/config.ts'
import { SubledgerError } from '../src/domain/errors.ts'
import { createApp } from '../src/http/app.ts'
import { guardLocal } from '../src/http/local-guard.ts'

const app = once(() => {
  const config = readConfig(process.env)
  const ctx = composeStarter(config)
  if (config.offline) return handle(createApp(ctx, { tenantOf: () => config.tenant, guard: guardLocal }))
  return handle(createApp(ctx, { tenantOf: (_request, env) => byPrincipal(env, config.tenant) }))
})

export const handler = async (event: unknown, context: Context) => app()(event as LambdaEvent, context)

/** IAM lets a principal in; whose data it sees is this deployment's setting. A route that lost its authorizer is shut. */
function byPrincipal(env: unknown, tenant: string): string {
  const { event } = env as { event: APIGatewayProxyEventV2WithIAMAuthorizer }
  if (!event.requestContext.authorizer?.iam?.userArn)
    throw new SubledgerError('unauthorized', 'Sign the request with AWS credentials (SigV4, service execute-api).')
  return tenant
}
