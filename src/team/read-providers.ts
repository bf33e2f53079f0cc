import type { ModelApi } from '../domain/team.ts'
import { refusal } from './keys.ts'
import { dotted, type Place } from './problems.ts'
import { API_TYPES, openaiApi, PROVIDERS } from './providers.ts'
import { readBaseUrl, readTokenKey } from './read-address.ts'
import { cut, type Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import type { Entry } from './yaml-tree.ts'

/** How the models of a provider are reached, as far as the provider says. */
export interface Reached {
  readonly api: ModelApi
  readonly baseUrl?: string
  readonly tokenKey?: string
}

/** `providers`, by name; null: it is there, but wrong. */
export type CustomProviders = ReadonlyMap<string, Reached | null>

export function readProviders(reader: Reader, section: Entry | undefined): CustomProviders {
  const providers = new Map<string, Reached | null>()
  for (const entry of reader.map(section)?.entries.values() ?? [])
    if (reader.name(entry, 'a provider')) providers.set(entry.key, readProvider(reader, entry) ?? null)
  return providers
}

function readProvider(reader: Reader, entry: Entry): Reached | undefined {
  const fields = reader.section(entry, 'providers.*')
  if (!fields) return undefined
  const api = reader.oneOf(fields.get('api_type'), API_TYPES)
  const baseUrl = readBaseUrl(reader, fields.get('base_url'))
  const tokenKey = readTokenKey(reader, fields.get('token_key'))
  if (!fields.has('base_url'))
    reader.problems.error(entry.at, `"${dotted(entry.at.path)}" must say "base_url": where its API is`)
  if (baseUrl === undefined) return undefined
  return { api: api ?? 'openai_chatcompletions', baseUrl, ...(tokenKey !== undefined && { tokenKey }) }
}

/** What came of looking a provider up: how it is reached; or it is not done here; or it is wrong, and reported. */
export type Looked = Reached | 'unsupported' | undefined

/**
 * Finds the provider of a model. Providers of the file go before built-in ones of the same name.
 * @param apiType what `provider_opts.api_type` asks for
 */
export function findProvider(
  reader: Reader,
  at: Place,
  name: string,
  model: string,
  providers: CustomProviders,
  apiType?: ModelApi,
): Looked {
  const custom = providers.get(name)
  if (custom === null) return undefined
  if (custom) return { ...custom, api: apiType ?? custom.api }
  const known = PROVIDERS.get(name)
  if (!known) {
    const names = [...providers.keys(), ...[...PROVIDERS].filter(([, p]) => p.fate === 'supported').map(([n]) => n)]
    const hint = didYouMean(name, names) || `; name it under "providers", or use one of ${names.join(', ')}`
    reader.problems.error(at, `there is no provider "${cut(name)}"${hint}`)
    return undefined
  }
  if (known.fate !== 'supported') {
    reader.problems.unsupported(at, refusal(name, known))
    return 'unsupported'
  }
  const { baseUrl, tokenKey } = known
  if (apiType && known.api !== undefined && known.api !== 'openai_compatible') {
    reader.problems.error(at, `the provider "${name}" has one API; "api_type" is for OpenAI-compatible providers`)
    return undefined
  }
  return {
    api: apiType ?? known.api ?? openaiApi(model),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(tokenKey !== undefined && { tokenKey }),
  }
}
