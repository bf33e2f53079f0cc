import { isBedrockHost } from '../domain/bedrock-host.ts'
import type { InputIssue } from '../domain/errors.ts'
import type { ModelApi, ModelDefinition } from '../domain/team.ts'
import type { AskedModel } from '../ports.ts'
import { dotted, type Place } from './problems.ts'
import { API_TYPES, PROVIDERS } from './providers.ts'
import { isLoopback, readBaseUrl, readTokenKey } from './read-address.ts'
import { readCost } from './read-cost.ts'
import { readOptions } from './read-options.ts'
import { type CustomProviders, findProvider, type Reached } from './read-providers.ts'
import { cut, type Fields, type Reader } from './reader.ts'
import { type Entry, findPlace, type MapTree } from './yaml-tree.ts'

/** Checks the `provider_opts` of a scripted model. Paths of issues are JSON pointers into it; messages go on after its name. */
export type CheckScript = (options: unknown) => readonly InputIssue[]

/** Whether the price of a model without a `cost` is known all the same. */
export type KnowsPrice = (model: AskedModel) => boolean

/** A model; or it is left out, with a warning; or it is wrong, and reported. */
export type ReadModel = ModelDefinition | 'left out' | undefined

export interface ModelContext {
  readonly providers: CustomProviders
  readonly checkScript?: CheckScript
  readonly knowsPrice?: KnowsPrice
}

/** Names of models, and `provider/model`: they are part of stored items. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}$/
const MAX_TOKENS = 10_000_000
/** Claude refuses a smaller budget. */
const LEAST_THINKING = 1_024
const MOST_THINKING = 1_000_000
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh']
const CLAUDES_EFFORTS = [...EFFORTS, 'max', 'adaptive']
/** APIs that serve Claude. */
const CLAUDES: ReadonlySet<ModelApi> = new Set<ModelApi>(['anthropic', 'amazon_bedrock'])

/** One entry of `models`. */
export function readModel(reader: Reader, entry: Entry, context: ModelContext): ReadModel {
  const { problems } = reader
  if (!modelName(reader, entry.key, entry.at)) return undefined
  const fields = reader.section(entry, 'models.*')
  if (!fields) return undefined
  const here = `"${dotted(entry.at.path)}"`

  const provider = reader.text(fields.get('provider')?.value)
  if (!provider) problems.error(entry.at, `${here} must say "provider", such as openai, anthropic or scripted`)
  const given = reader.text(fields.get('model')?.value)
  const model = given || (provider === 'scripted' ? 'scripted' : undefined)
  if (!model) problems.error(entry.at, `${here} must say "model": the provider's name of it`)
  else if (given) modelName(reader, model, fields.get('model')!.value)

  const opts = reader.map(fields.get('provider_opts'))
  const apiType = readApiType(reader, opts)
  const ownBaseUrl = readBaseUrl(reader, fields.get('base_url'))
  const usual = provider && !context.providers.has(provider) ? PROVIDERS.get(provider)?.tokenKeys : undefined
  const ownTokenKey = readTokenKey(reader, fields.get('token_key'), usual?.length === 1 ? usual[0] : undefined)
  const cost = readCost(reader, fields.get('cost'))
  const settings = readSettings(reader, fields)

  if (!provider) return undefined
  // also where the model is missing: a slip in the provider's name may be why
  const reached = findProvider(reader, fields.get('provider')!.value, provider, model ?? '', context.providers, apiType)
  if (!model) return undefined
  if (reached === 'unsupported') return 'left out'
  if (!reached) return undefined

  const thinking = readThinking(reader, fields.get('thinking_budget'), reached.api)
  const baseUrl = ownBaseUrl ?? reached.baseUrl
  const tokenKey = ownTokenKey ?? usualKey(reader, entry.at, provider, ownBaseUrl, reached, context.providers)
  if (ownBaseUrl !== undefined && reached.api === 'scripted')
    problems.error(fields.get('base_url')!.value, 'a scripted model has no address')
  warnOfKey(reader, entry.at, baseUrl, tokenKey)
  const of = { api: reached.api, ...(baseUrl !== undefined && { baseUrl }), ...(cost && { cost }) }
  const options = opts && readOptions(reader, opts, of, context.providers.has(provider) ? undefined : provider)
  if (
    reached.api === 'amazon_bedrock' &&
    ownBaseUrl !== undefined &&
    !ownTokenKey &&
    !isBedrockHost(new URL(ownBaseUrl).hostname)
  )
    problems.error(
      fields.get('base_url')!.value,
      `credentials of AWS go to AWS's own hosts only; name the key of ${hostOf(ownBaseUrl)} as "token_key"`,
    )
  if (reached.api === 'scripted') check(reader, entry, opts, options, context.checkScript)
  if (!fields.has('cost'))
    warnOfPrice(reader, entry.at, entry.key, { provider, model, ...(baseUrl && { baseUrl }) }, context)
  return {
    provider,
    api: reached.api,
    model,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(tokenKey !== undefined && { tokenKey }),
    ...settings,
    ...(thinking !== undefined && { thinkingBudget: thinking }),
    ...(options && Object.keys(options).length > 0 && { options }),
    ...(cost && { cost }),
  }
}

/** What is sent with every call as it is given. */
function readSettings(reader: Reader, fields: Fields): Partial<ModelDefinition> {
  if (reader.boolean(fields.get('track_usage')) === false)
    reader.problems.error(
      fields.get('track_usage')!.value,
      '"track_usage" cannot be switched off: every call is booked',
    )
  const settings = {
    maxTokens: reader.integer(fields.get('max_tokens'), 1, MAX_TOKENS),
    minTokens: reader.integer(fields.get('min_tokens'), 1, MAX_TOKENS),
    temperature: reader.number(fields.get('temperature'), 0, 2),
    topP: reader.number(fields.get('top_p'), 0, 1),
    frequencyPenalty: reader.number(fields.get('frequency_penalty'), -2, 2),
    presencePenalty: reader.number(fields.get('presence_penalty'), -2, 2),
    parallelToolCalls: reader.boolean(fields.get('parallel_tool_calls')),
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

/** A model that an agent names as `provider/model`. */
export function readInlineModel(reader: Reader, at: Place, name: string, context: ModelContext): ReadModel {
  const slash = name.indexOf('/')
  const provider = name.slice(0, slash)
  const model = name.slice(slash + 1)
  if (!modelName(reader, name, at)) return undefined
  const reached = findProvider(reader, at, provider, model, context.providers)
  if (reached === 'unsupported') return 'left out'
  if (!reached) return undefined
  if (reached.api === 'scripted') {
    reader.problems.error(at, 'a scripted model needs its script: write it under "models"')
    return undefined
  }
  warnOfKey(reader, at, reached.baseUrl, reached.tokenKey)
  warnOfPrice(reader, at, name, { provider, model, ...reached }, context)
  return { provider, model, ...reached }
}

function modelName(reader: Reader, name: string, at: Place): boolean {
  if (MODEL_NAME.test(name)) return true
  reader.problems.error(
    at,
    `"${cut(name)}" cannot name a model: letters, digits and any of "_.:/@+-" make a name, of at most 128 characters`,
  )
  return false
}

function readApiType(reader: Reader, opts: MapTree | undefined): ModelApi | undefined {
  return reader.oneOf(opts?.entries.get('api_type'), API_TYPES)
}

/** An effort word or a number of tokens; 0 is `none`, and -1 leaves it to the model. */
function readThinking(reader: Reader, entry: Entry | undefined, api: ModelApi): number | string | undefined {
  const text = reader.text(entry?.value)
  if (text === undefined || !entry) return undefined
  if (text === '0') return 'none'
  const words = CLAUDES.has(api) ? CLAUDES_EFFORTS : EFFORTS
  if (words.includes(text)) return text
  const tokens = /^(-1|\d{1,7})$/.test(text) ? Number(text) : undefined
  const least = CLAUDES.has(api) ? LEAST_THINKING : 1
  if (tokens === -1 || (tokens !== undefined && tokens >= least && tokens <= MOST_THINKING)) return tokens
  reader.problems.error(
    entry.value,
    `"${dotted(entry.value.path)}" must be a number of tokens from ${least} to ${MOST_THINKING}, or one of the words ${words.join(', ')}, not "${cut(text)}"`,
  )
  return undefined
}

function check(
  reader: Reader,
  entry: Entry,
  opts: MapTree | undefined,
  options: unknown,
  checkScript: CheckScript | undefined,
): void {
  if (!opts) {
    reader.problems.error(entry.at, `"${dotted(entry.at.path)}" must have its script in "provider_opts"`)
    return
  }
  for (const { path, message } of checkScript?.(options) ?? [])
    reader.problems.error(findPlace(opts, path), `"${dotted(opts.path + path)}" ${message}`)
}

/** Prices are those of the provider's own host: what another one charges for a model of the same name nobody knows. */
function warnOfPrice(reader: Reader, at: Place, name: string, model: AskedModel, { knowsPrice }: ModelContext): void {
  if (knowsPrice?.(model)) return
  const elsewhere = model.baseUrl !== undefined && !isLoopback(model.baseUrl) ? ` at ${hostOf(model.baseUrl)}` : ''
  reader.problems.warning(
    at,
    `the model "${name}" has no "cost", and no price of ${model.provider}/${model.model}${elsewhere} is known: its calls will be booked without a price`,
  )
}

/**
 * The key that the provider itself names. A built-in provider's usual key goes to its own host: for another one the file
 * must name the key.
 */
function usualKey(
  reader: Reader,
  at: Place,
  provider: string,
  ownBaseUrl: string | undefined,
  reached: Reached,
  providers: CustomProviders,
): string | undefined {
  const { tokenKey } = reached
  if (ownBaseUrl === undefined || providers.has(provider)) return tokenKey
  const usual = tokenKey ?? (reached.api === 'google' ? PROVIDERS.get(provider)?.tokenKeys?.[0] : undefined)
  if (usual === undefined || homeOf(provider) === hostOf(ownBaseUrl)) return tokenKey
  if (!isLoopback(ownBaseUrl))
    reader.problems.warning(
      at,
      `no key is sent to ${hostOf(ownBaseUrl)}; if it wants one, name its variable as "token_key" (${usual} goes to the provider's own host unless it is named)`,
    )
  return undefined
}

/** A key of one provider that goes to the host of another may be meant so, but the author should know. */
function warnOfKey(reader: Reader, at: Place, baseUrl: string | undefined, tokenKey: string | undefined): void {
  if (baseUrl === undefined || tokenKey === undefined || isLoopback(baseUrl)) return
  const owner = [...PROVIDERS].find(([, p]) => p.tokenKey === tokenKey || p.tokenKeys?.includes(tokenKey))?.[0]
  if (owner === undefined || homeOf(owner) === hostOf(baseUrl)) return
  reader.problems.warning(at, `the key in ${tokenKey} will be sent to ${hostOf(baseUrl)}`)
}

const hostOf = (url: string): string => new URL(url).host
/** Where a built-in provider is at home. */
function homeOf(provider: string): string {
  const { baseUrl, host = `api.${provider}.com` } = PROVIDERS.get(provider) ?? {}
  return baseUrl === undefined ? host : hostOf(baseUrl)
}
