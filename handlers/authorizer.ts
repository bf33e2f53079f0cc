import type { APIGatewayRequestAuthorizerEventV2, Context } from 'aws-lambda'
import { readConfig } from '../src/config.ts'
import { readAuth } from '../src/config-auth.ts'
import { authorizer } from '../src/http/auth/authorizer.ts'
import { createJsonLogger } from '../src/logger.ts'
import { once } from '../src/system.ts'

const check = once(() => {
  const { offline } = readConfig(process.env)
  return authorizer(readAuth(process.env, offline ? 'local' : 'deployed'), createJsonLogger())
})

/** Looks at the token of a request before the API does: the same check, so that what is no token costs no more than that. */
export const handler = async (event: APIGatewayRequestAuthorizerEventV2, context: Context) =>
  check()(event.headers, context.awsRequestId)
