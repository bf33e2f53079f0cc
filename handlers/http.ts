import type { Context } from 'aws-lambda'
import type { LambdaEvent } from 'hono/aws-lambda'
import { once } from '../src/compose.ts'
import { composeHttp } from '../src/compose-http.ts'
import { readConfig } from '../src/config.ts'
import { readAuth } from '../src/config-auth.ts'
import { createApp } from '../src/http/app.ts'
import { doorOf } from '../src/http/auth/identify.ts'
import { lambdaHandler } from '../src/http/lambda.ts'
import { guardLocal } from '../src/http/local-guard.ts'

const app = once(() => {
  const config = readConfig(process.env)
  const door = doorOf(readAuth(process.env, config.offline ? 'local' : 'deployed'), config.tenant)
  return lambdaHandler(createApp(composeHttp(config), { ...door, ...(config.offline && { guard: guardLocal }) }))
})

export const handler = async (event: unknown, context: Context) => app()(event as LambdaEvent, context)
