import type { ModelDefinition } from '../domain/team.ts'
import type { ModelFailure } from '../ports.ts'

/** Where a model is reached, and with which key. */
export interface Endpoint {
  readonly baseUrl: string
  /** OpenAI's or Anthropic's own address, not one that is compatible with it */
  readonly own: boolean
  /** undefined: none is sent */
  readonly key: string | undefined
}

const OPENAI = { baseUrl: 'https://api.openai.com/v1', domain: 'openai.com', variable: 'OPENAI_API_KEY' }
const ANTHROPIC = { baseUrl: 'https://api.anthropic.com/v1', domain: 'anthropic.com', variable: 'ANTHROPIC_API_KEY' }

/**
 * A model's address and key. The key comes from the variable that `tokenKey` names; without it OpenAI's and Anthropic's
 * usual keys go to their own hosts only, and any other endpoint is called without a key, as local servers want it.
 * @returns a failure where the call cannot be made
 */
export function endpointOf(
  definition: ModelDefinition,
  env: (name: string) => string | undefined,
): Endpoint | { readonly failure: ModelFailure } {
  const maker = definition.api === 'anthropic' ? ANTHROPIC : OPENAI
  const place = `model ${definition.model} of provider ${definition.provider}`
  if (!definition.baseUrl && definition.api === 'openai_compatible')
    return refuse('invalid_request', `base_url is missing: ${place} has no address of its own.`)

  let url: URL
  try {
    url = new URL(definition.baseUrl || maker.baseUrl)
  } catch {
    return refuse('invalid_request', `base_url of ${place} is no URL.`)
  }
  const own = url.hostname === maker.domain || url.hostname.endsWith(`.${maker.domain}`)
  // Anthropic's own clients are given the address without the version, the package wants it with
  if (definition.api === 'anthropic' && url.pathname === '/') url.pathname = '/v1'
  const baseUrl = url.href.replace(/\/+$/, '')

  const variable = definition.tokenKey ?? (own ? maker.variable : undefined)
  if (variable === undefined) return { baseUrl, own, key: undefined }
  // the account's own credentials are no provider's key
  if (/^AWS_/i.test(variable)) return refuse('auth', `token_key of ${place} names ${variable}, which is never sent.`)
  const key = env(variable)?.trim()
  return key ? { baseUrl, own, key } : refuse('auth', `${variable} is not set: ${place} needs it.`)
}

const refuse = (kind: 'auth' | 'invalid_request', message: string) => ({ failure: { class: kind, message } })
