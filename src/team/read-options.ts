import { LARGE_PROMPT_BETAS, type NotSent, siftOptions, snakeCase } from '../domain/provider-options.ts'
import type { ModelApi, ModelDefinition } from '../domain/team.ts'
import { dotted } from './problems.ts'
import { PROVIDERS } from './providers.ts'
import { cut, type Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import type { Entry, MapTree } from './yaml-tree.ts'

const REGION = /^[a-z0-9-]{1,32}$/

/**
 * `provider_opts` as plain values, without `api_type`, which is resolved. What would not be sent with a call is reported
 * and left out.
 * @param provider the built-in provider, if it is one
 */
export function readOptions(
  reader: Reader,
  opts: MapTree,
  model: Pick<ModelDefinition, 'api' | 'baseUrl' | 'cost'>,
  provider: string | undefined,
): ModelDefinition['options'] {
  const { api_type: _, ...said } = reader.plain(opts) as { [key: string]: unknown }
  if (model.api === 'scripted') return said
  const refused = provider === undefined ? [] : refuse(reader, opts, provider)
  const options = Object.fromEntries(Object.entries(said).filter(([key]) => !refused.includes(key)))
  const { kept, notSent } = siftOptions({ ...model, options })
  for (const one of notSent) report(reader, opts, model.api, one)
  reader.boolean(opts.entries.get('stream'))
  if (model.api === 'amazon_bedrock') checkRegion(reader, opts.entries.get('region'))
  return kept
}

/** Reports docker-agent's options of a provider that are not done here, and returns them. */
function refuse(reader: Reader, opts: MapTree, provider: string): string[] {
  const { refuses = new Map<string, string>() } = PROVIDERS.get(provider) ?? {}
  const refused = [...opts.entries.values()].filter(({ key }) => refuses.has(key))
  for (const { key, at } of refused)
    reader.problems.unsupported(at, `"${key}" is not supported by this version: ${refuses.get(key)}`)
  return refused.map(({ key }) => key)
}

function checkRegion(reader: Reader, region: Entry | undefined): void {
  const text = reader.text(region?.value)
  if (region && text !== undefined && !REGION.test(text))
    reader.problems.error(region.value, `"${dotted(region.value.path)}" must name a region, not "${cut(text)}"`)
}

function report(reader: Reader, opts: MapTree, api: ModelApi, { path, only, known }: NotSent): void {
  const entry = entryAt(opts, path)
  if (!entry) return
  const key = cut(entry.key)
  if (only) {
    const value = reader.plain(entry.value)
    if (Array.isArray(value) && value.every((v) => only.includes(v) || LARGE_PROMPT.includes(v))) {
      const listed = cut(value.filter((v) => LARGE_PROMPT.includes(v)).join())
      reader.problems.unsupported(entry.value, `"${listed}" is not sent with calls: ${LARGE_PROMPT_PRICE}`)
      return
    }
    const said = cut(JSON.stringify(value))
    const values = only.map((v) => JSON.stringify(v)).join(' or ')
    const why = 'anything else may change the price of a call, or what is asked'
    reader.problems.unsupported(entry.value, `"${key}" may be ${values}, not ${said}: ${why}`)
    return
  }
  const named = snakeCase(entry.key)
  const why = REASONS.find(([keys, , of]) => keys.test(named) && (of === undefined || of === api))?.[1]
  if (why) reader.problems.unsupported(entry.at, `"${key}" is not sent with calls: ${why}`)
  else {
    const hint = didYouMean(entry.key, known) || '; take it out'
    const unknown = 'whether it changes their price, their output cap or the model that answers is not known'
    reader.problems.error(entry.at, `"${key}" is not sent with calls: ${unknown}${hint}`)
  }
}

function entryAt(opts: MapTree, path: readonly string[]): Entry | undefined {
  let map: MapTree = opts
  let entry: Entry | undefined
  for (const key of path) {
    entry = map.entries.get(key)
    if (entry?.value.kind === 'map') map = entry.value
  }
  return entry
}

const LARGE_PROMPT: readonly unknown[] = LARGE_PROMPT_BETAS
const LARGE_PROMPT_PRICE =
  'a prompt beyond 200,000 tokens has another price, which the table may not have for this model; write the highest as "cost" at the model'

/** Why options that are well known are not sent, and what does instead; perhaps with one API alone. */
const REASONS: readonly (readonly [keys: RegExp, why: string, api?: ModelApi])[] = [
  [
    /^(max_(completion_|output_|new_)?tokens(_to_sample)?|num_predict|max_length|max_gen_len|inference_config|generation_config)$/,
    'write "max_tokens", "temperature" and "top_p" at the model; the output cap bounds what is set aside',
  ],
  [/^(temperature|top_p|frequency_penalty|presence_penalty)$/, 'write it at the model, beside "provider_opts"'],
  [
    /^(thinking|thinking_budget|reasoning|reasoning_config|budget_tokens|max_reasoning_tokens)$/,
    'write "thinking_budget" at the model; what is thought is inside the output cap',
  ],
  [/^(n|best_of|candidate_count|num_completions|num_generations)$/, 'a call asks for one answer'],
  [
    /^(models?|fallbacks?|route|routing|provider|providers|preset|safety_model)$/,
    'another model might answer, or at another price; each model of the file stands for itself',
  ],
  [
    /^(tools|tool_config|functions?|function_call|mcp_servers|container|plugins|web_search(_options)?|search_parameters|allowed_tools)$/,
    "the tools are the agent's, and the provider's own are not asked for",
  ],
  [
    /^(messages|input|prompt|instructions|system|documents|cached_content|conversation|previous_response_id|thread|continuation_token|context_management|compaction(_trigger)?)$/,
    'a call is made of the instruction, the conversation and the tools of its agent alone',
  ],
  [/^transforms$/, 'the conversation is sent whole, and no part of it is taken out on the way'],
  [/^prompt_mode$/, "it puts a prompt of the provider's own before the instruction; write that into the instruction"],
  [
    /^thinking_display$/,
    'what is thought is shown as the provider gives it; "thinking_budget" at the model says how much',
  ],
  [
    /^reasoning_summary$/,
    'chat completions do not know it; write "api_type: openai_responses"',
    'openai_chatcompletions',
  ],
  [/^prediction$/, 'what is predicted wrongly is billed as output, beyond the output cap'],
  [/^(modalities|audio|image_config|speech_config)$/, 'answers are text; other output has other prices'],
  [/^(stream_options)$/, 'it is set with every call, for the books need the usage'],
  [
    /^(speed|service_tier|inference_geo|performance_config|request_type|shared_request_type)$/,
    'it may raise the price',
  ],
  [/^(extra_body|extra_query|extra_headers|headers)$/, 'write the options themselves, each under "provider_opts"'],
]
