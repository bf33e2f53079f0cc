/**
 * Which of a model's `provider_opts` are sent with its calls. A hold bounds a call only if nothing that is sent raises its
 * price or its output cap, or lets another model answer. Providers add options all the time, so those that are known to do
 * neither are listed here, and no other is sent.
 */
import { isObject } from './objects.ts'
import type { ModelDefinition } from './team.ts'
import { byteLength } from './text.ts'

/** What may be sent for one option. Keys are written with `_`; a file may write them as `topK` too. */
type Rule =
  | 'any'
  /** ours: it says how a call is made, and is not sent */
  | 'setting'
  /** these values alone */
  | { readonly only: readonly (string | boolean)[] }
  /** a list of these values, and of those that raise the price of a large prompt, where the price is the model's own */
  | { readonly listOf: readonly string[]; readonly dearer?: readonly string[] }
  /** a mapping of these keys */
  | { readonly keys: Rules }

type Rules = { readonly [key: string]: Rule }

const all = (...keys: string[]): Rules => Object.fromEntries(keys.map((key) => [key, 'any']))

const STREAM: Rules = { stream: 'setting' }
/** OpenAI's `auto` takes what its project is set to, which may be priority processing. */
const STANDARD_TIERS = ['default', 'flex'] as const

const OPENAI: Rules = {
  ...STREAM,
  ...all('user', 'metadata', 'safety_identifier', 'parallel_tool_calls', 'logprobs', 'reasoning_effort'),
  ...all('prompt_cache_key', 'prompt_cache_retention', 'text_verbosity', 'strict_json_schema'),
  ...all('force_reasoning'),
  system_message_mode: { only: ['system', 'developer'] },
  store: { only: [false] },
  service_tier: { only: STANDARD_TIERS },
}

/** Betas that open a context whose large prompts have another price: the price table does not have it for every model. */
export const LARGE_PROMPT_BETAS = ['context-1m-2025-08-07'] as const

const CLAUDE_BETAS = {
  listOf: [
    'interleaved-thinking-2025-05-14',
    'extended-cache-ttl-2025-04-11',
    'token-efficient-tools-2025-02-19',
    'fine-grained-tool-streaming-2025-05-14',
    'output-128k-2025-02-19',
  ],
  dearer: LARGE_PROMPT_BETAS,
} as const

const BEDROCK: Rules = {
  ...STREAM,
  region: 'setting',
  model_family: 'setting',
  interleaved_thinking: 'setting',
  disable_prompt_caching: 'setting',
  ...all('top_k', 'stop', 'stop_sequences', 'guardrail_config', 'request_metadata'),
  ...all('additional_model_response_field_paths'),
  performance_config: { keys: { latency: { only: ['standard'] } } },
  service_tier: { only: STANDARD_TIERS },
  additional_model_request_fields: {
    keys: {
      ...all('top_k', 'k', 'seed', 'min_p', 'repetition_penalty', 'safe_prompt', 'safety_mode', 'logit_bias'),
      ...all('frequency_penalty', 'presence_penalty', 'count_penalty', 'reasoning_effort'),
      output_config: { keys: all('effort') },
      anthropic_beta: CLAUDE_BETAS,
    },
  },
}

/** Options of OpenAI's chat completions, and such of other servers as choose words or ask for reasoning. */
const COMPATIBLE: Rules = {
  ...STREAM,
  ...all('temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'seed', 'stop', 'logit_bias'),
  ...all('logprobs', 'top_logprobs', 'response_format', 'tool_choice', 'parallel_tool_calls'),
  ...all('reasoning_effort', 'verbosity', 'text_verbosity', 'strict_json_schema'),
  ...all('user', 'metadata', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'),
  ...all('top_k', 'top_a', 'min_p', 'typical_p', 'repetition_penalty', 'repeat_penalty'),
  ...all('stop_token_ids', 'random_seed', 'safe_prompt'),
  ...all('enable_thinking', 'disable_reasoning', 'include_reasoning', 'reasoning_format'),
  store: { only: [false] },
  service_tier: { only: [...STANDARD_TIERS, 'standard', 'on_demand'] },
  reasoning: { keys: all('effort', 'enabled', 'exclude') },
  thinking: { keys: all('type') },
  chat_template_kwargs: { keys: all('enable_thinking', 'thinking', 'reasoning_effort') },
}

const RULES = {
  openai_chatcompletions: { ...OPENAI, ...all('logit_bias', 'seed', 'stop', 'stop_sequences') },
  openai_responses: {
    ...OPENAI,
    ...all('include', 'truncation', 'text_format', 'reasoning_summary', 'reasoning_context'),
    reasoning_mode: { only: ['standard'] },
  },
  openai_compatible: COMPATIBLE,
  anthropic: {
    ...STREAM,
    interleaved_thinking: 'setting',
    ...all(
      'top_k',
      'stop',
      'stop_sequences',
      'effort',
      'disable_parallel_tool_use',
      'send_reasoning',
      'tool_streaming',
    ),
    metadata: { keys: all('user_id') },
    // both lifetimes have their rate in the price of a model
    cache_control: { keys: all('type', 'ttl') },
    anthropic_beta: CLAUDE_BETAS,
    inference_geo: { only: ['global'] },
    service_tier: { only: ['standard_only'] },
    speed: { only: ['standard'] },
  },
  google: {
    ...STREAM,
    ...all('top_k', 'seed', 'stop', 'stop_sequences', 'safety_settings', 'threshold', 'media_resolution'),
    ...all('structured_outputs'),
    thinking_config: { keys: all('include_thoughts', 'thinking_budget', 'thinking_level') },
    response_modalities: { listOf: ['TEXT'] },
    service_tier: { only: ['standard', 'flex'] },
  },
  amazon_bedrock: BEDROCK,
} satisfies { readonly [api: string]: Rules }

type Optioned = Pick<ModelDefinition, 'api' | 'baseUrl' | 'cost' | 'options'>

/** What of an option, or of a part of it, is not sent. */
export interface NotSent {
  /** its key, below those of the options that it is in */
  readonly path: readonly string[]
  /** the values that would be sent; left out: the key is not sent at all */
  readonly only?: readonly (string | boolean)[]
  /** keys that would be sent in its place */
  readonly known: readonly string[]
}

/** Whether an address is the host of that domain, or below it. */
export const isAtDomain = (url: URL, domain: string): boolean =>
  url.hostname === domain || url.hostname.endsWith(`.${domain}`)

/** Chat completions anywhere but at OpenAI itself may be any server's. */
function rulesOf({ api, baseUrl }: Optioned): Rules | undefined {
  if (api === 'scripted') return undefined
  if (api !== 'openai_chatcompletions' || !baseUrl) return RULES[api]
  const own = URL.canParse(baseUrl) && isAtDomain(new URL(baseUrl), 'openai.com')
  return own ? RULES.openai_chatcompletions : COMPATIBLE
}

type Options = { readonly [key: string]: unknown }

/** What is sent with every call. A script is not. */
export function sentOptions(model: Optioned): { [key: string]: unknown } {
  const rules = rulesOf(model)
  return rules ? sift(model.options ?? {}, rules, { settings: false, ownCost: !!model.cost }).kept : {}
}

/** Bytes of JSON that the options add to a request: some of them, such as the schema of an answer, are read with the prompt. */
export function optionsBound(model: Optioned): number {
  const sent = sentOptions(model)
  return Object.keys(sent).length === 0 ? 0 : byteLength(JSON.stringify(sent))
}

/** The options without what is not sent, our own settings kept, and what that is. */
export function siftOptions(model: Optioned): { kept: Options; notSent: readonly NotSent[] } {
  const rules = rulesOf(model)
  const how = { settings: true, ownCost: !!model.cost }
  return rules ? sift(model.options ?? {}, rules, how) : { kept: model.options ?? {}, notSent: [] }
}

interface How {
  /** keep our own settings */
  readonly settings: boolean
  /** the model's price is the team file's */
  readonly ownCost: boolean
}

function sift(options: Options, rules: Rules, how: How): { kept: Options; notSent: NotSent[] } {
  const kept: [string, unknown][] = []
  const notSent: NotSent[] = []
  for (const [key, value] of Object.entries(options)) {
    const rule = ruleFor(key, rules)
    if (rule === undefined) notSent.push({ path: [key], known: Object.keys(rules) })
    else if (rule === 'any' || (rule === 'setting' && how.settings)) kept.push([key, value])
    else if (rule === 'setting') continue
    else if ('keys' in rule) {
      const inner = isObject(value) ? sift(value, rule.keys, how) : undefined
      notSent.push(
        ...(inner?.notSent.map((n) => ({ ...n, path: [key, ...n.path] })) ?? [
          { path: [key], known: Object.keys(rule.keys).map((k) => `${key}.${k}`) },
        ]),
      )
      if (inner && Object.keys(inner.kept).length > 0) kept.push([key, inner.kept])
    } else {
      const more = 'only' in rule || !how.ownCost ? [] : (rule.dearer ?? [])
      const only: readonly unknown[] = 'only' in rule ? rule.only : [...rule.listOf, ...more]
      const said = 'only' in rule ? [value] : Array.isArray(value) ? value : [undefined]
      if (said.every((v) => only.includes(v))) kept.push([key, value])
      else notSent.push({ path: [key], only: only as (string | boolean)[], known: [] })
    }
  }
  return { kept: Object.fromEntries(kept), notSent }
}

/** Settings are read by their own spelling alone. */
function ruleFor(key: string, rules: Rules): Rule | undefined {
  const name = snakeCase(key)
  const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
  return rule === 'setting' && key !== name ? undefined : rule
}

/** `serviceTier` → `service_tier` */
export const snakeCase = (key: string): string => key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)
