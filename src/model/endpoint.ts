import { isBedrockHost } from '../domain/bedrock-host.ts'
import { isAtDomain } from '../domain/provider-options.ts'
import type { ModelDefinition } from '../domain/team.ts'
import type { ModelFailure } from '../ports.ts'

/** Where a model is reached, and with which key. */
export interface Endpoint {
  readonly baseUrl: string
  /** the maker's own address, not one that is compatible with it */
  readonly own: boolean
  /** undefined: none is sent */
  readonly key: string | undefined
  /** Bedrock: the region that requests are signed for, with the credentials of AWS, where there is no key */
  readonly region?: string
}

export type Refused = { readonly failure: ModelFailure }

interface Maker {
  readonly baseUrl: string
  readonly domain: string
  /** where the usual key is looked for, in this order */
  readonly variables: readonly string[]
  /** path of the version, which the package wants in the address and the maker's own clients do without */
  readonly version?: string
}

const OPENAI: Maker = {
  baseUrl: 'https://api.openai.com/v1',
  domain: 'openai.com',
  variables: ['OPENAI_API_KEY'],
}
const ANTHROPIC: Maker = {
  baseUrl: 'https://api.anthropic.com/v1',
  domain: 'anthropic.com',
  variables: ['ANTHROPIC_API_KEY'],
  version: '/v1',
}
const GOOGLE: Maker = {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  domain: 'generativelanguage.googleapis.com',
  // docker-agent's two in its order, then the one of the package
  variables: ['GOOGLE_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  version: '/v1beta',
}

const makerOf = (definition: ModelDefinition): Maker =>
  definition.api === 'anthropic' ? ANTHROPIC : definition.api === 'google' ? GOOGLE : OPENAI

type Env = (name: string) => string | undefined

/**
 * A model's address and key. The key comes from the variable that `tokenKey` names; without it the makers' usual keys go
 * to their own hosts only, and any other endpoint is called without a key, as local servers want it.
 * @returns a failure where the call cannot be made
 */
export function endpointOf(definition: ModelDefinition, env: Env): Endpoint | Refused {
  if (definition.api === 'amazon_bedrock') return bedrockEndpoint(definition, env)
  const maker = makerOf(definition)
  const place = placeOf(definition)
  if (!definition.baseUrl && definition.api === 'openai_compatible')
    return refuse('invalid_request', `base_url is missing: ${place} has no address of its own.`)

  const url = parse(definition.baseUrl || maker.baseUrl)
  if (!url) return refuse('invalid_request', `base_url of ${place} is no URL.`)
  const own = isAtDomain(url, maker.domain)
  if (maker.version && url.pathname === '/') url.pathname = maker.version
  const baseUrl = url.href.replace(/\/+$/, '')

  const variables = definition.tokenKey !== undefined ? [definition.tokenKey] : own ? maker.variables : []
  if (variables.length === 0) return { baseUrl, own, key: undefined }
  const key = keyFrom(variables, env, place)
  return typeof key === 'object' ? key : { baseUrl, own, key }
}

const domainOf = (region: string): string =>
  region.startsWith('cn-') ? 'amazonaws.com.cn' : region.startsWith('eusc-') ? 'amazonaws.eu' : 'amazonaws.com'
const BEDROCK_KEY = 'AWS_BEARER_TOKEN_BEDROCK'

/**
 * Bedrock is reached with a key of its own (`AWS_BEARER_TOKEN_BEDROCK`, or what `tokenKey` names) or, without one, with
 * the credentials that the AWS SDK finds: those of the function's role. Both but the named one go to AWS's hosts only.
 */
function bedrockEndpoint(definition: ModelDefinition, env: Env): Endpoint | Refused {
  const place = placeOf(definition)
  const foreign = BEDROCK_OTHERS.find((name) => definition.options?.[name] !== undefined)
  if (foreign)
    return refuse('invalid_request', `provider_opts.${foreign} of ${place} is not supported: ${NO_OTHER_ACCOUNT}`)
  const region = given(definition.options?.region) ?? given(env('AWS_REGION')) ?? given(env('AWS_DEFAULT_REGION'))
  if (region === undefined)
    return refuse('invalid_request', `${place} has no region: set provider_opts.region or AWS_REGION.`)
  if (!/^[a-z0-9-]{1,32}$/.test(region))
    return refuse('invalid_request', `The region of ${place} is no name of a region.`)
  const url = parse(definition.baseUrl || `https://bedrock-runtime.${region}.${domainOf(region)}`)
  if (!url) return refuse('invalid_request', `base_url of ${place} is no URL.`)
  const own = url.protocol === 'https:' && isBedrockHost(url.hostname)
  const baseUrl = url.href.replace(/\/+$/, '')
  if (definition.tokenKey !== undefined) {
    const key = keyFrom([definition.tokenKey], env, place)
    return typeof key === 'object' ? key : { baseUrl, own, key, region }
  }
  if (!own)
    return refuse('auth', `Credentials of AWS go to AWS's own hosts only: give ${place} a token_key for ${url.host}.`)
  return { baseUrl, own, key: given(env(BEDROCK_KEY)), region }
}

/** docker-agent's options for other credentials than those at hand. */
const BEDROCK_OTHERS = ['role_arn', 'role_session_name', 'external_id', 'profile', 'endpoint_url']
const NO_OTHER_ACCOUNT = "the credentials are those of the function's role, the address is base_url."

const placeOf = (d: ModelDefinition) => `model ${d.model} of provider ${d.provider}`
const parse = (url: string): URL | undefined => (URL.canParse(url) ? new URL(url) : undefined)
const given = (v: unknown): string | undefined => (typeof v === 'string' && v.trim() ? v.trim() : undefined)

function keyFrom(variables: readonly string[], env: Env, place: string): string | Refused {
  for (const variable of variables) {
    // the account's own credentials are no provider's key
    if (/^AWS_/i.test(variable)) return refuse('auth', `token_key of ${place} names ${variable}, which is never sent.`)
    const key = given(env(variable))
    if (key !== undefined) return key
  }
  return refuse('auth', `${variables.join(' or ')} is not set: ${place} needs it.`)
}

const refuse = (kind: 'auth' | 'invalid_request', message: string): Refused => ({ failure: { class: kind, message } })
