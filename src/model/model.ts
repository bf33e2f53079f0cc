import type { Model, ModelRequest, ModelResult } from '../ports.ts'
import type { CredentialsOf } from './aws-credentials.ts'
import type { ScriptedModel } from './scripted.ts'
import { FREE } from './usage.ts'

export interface ModelOptions {
  /** reads a variable of the environment: keys come from here and from nowhere else */
  readonly env: (name: string) => string | undefined
  /** signs the requests to Bedrock where there is no key; left out: the chain of the AWS SDK, on Lambda the function's role */
  readonly awsCredentials?: CredentialsOf
  /** serves `provider: scripted`; without it such a model is refused */
  readonly scripted?: ScriptedModel
  readonly fetch?: typeof globalThis.fetch
  /** epoch ms, for `retry-after` dates */
  readonly now?: () => number
}

/**
 * The model port over all providers. What a provider needs is loaded with its first call: importing this module loads
 * none of their packages.
 */
export function createModel(options: ModelOptions): Model {
  const { env, awsCredentials, scripted, now = Date.now } = options
  return {
    async call(request: ModelRequest): Promise<ModelResult> {
      if (request.definition.api === 'scripted') {
        if (scripted) return scripted.call(request)
        const message = `Model ${request.definition.model} is scripted, and scripted models are not served here.`
        return { finishReason: 'error', ...FREE, failure: { class: 'invalid_request', message } }
      }
      const { callProvider } = await import('./provider-call.ts')
      // looked up with every call: a test or a tracer may have put another one in its place
      return callProvider(request, { env, awsCredentials, now, fetch: options.fetch ?? globalThis.fetch })
    },
  }
}
