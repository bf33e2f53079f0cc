import type { JSONObject, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { outputCap } from '../domain/output-caps.ts'
import type { ModelDefinition } from '../domain/team.ts'
import type { ModelRequest } from '../ports.ts'
import { COMPATIBLE, type Speaker } from './packages.ts'
import { isClaude, toPrompt } from './prompt.ts'
import { bedrockThinking, claudeThinking, geminiThinking, INTERLEAVES, reasoningEffort } from './thinking.ts'

/** Keys of `provider_opts` that would change what is asked, what is streamed, or what a call may cost at most. */
const OURS = new Set([
  'model',
  'messages',
  'input',
  'instructions',
  'system',
  'tools',
  'tool_config',
  'n',
  'stream',
  'stream_options',
  'store',
  'conversation',
  'previous_response_id',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'inference_config',
  'reasoning_config',
  // other models and further rounds inside one call, at prices and of lengths that no hold was made for
  'fallbacks',
  'context_management',
  'cached_content',
  'continuation_token',
  'mcp_servers',
  'container',
  'speed',
])
/** Ours and docker-agent's, which are no parameters of a request. */
const SETTINGS = new Set([
  'interleaved_thinking',
  'disable_prompt_caching',
  'rerank_prompt',
  'runtime_flags',
  'region',
  'model_family',
])

/** Everything that one call is made with. */
export function callOptions(
  speaker: Speaker,
  request: ModelRequest,
  own: boolean,
  signal: AbortSignal,
): LanguageModelV4CallOptions {
  const { definition: d, tools } = request
  const cap = request.maxOutputTokens ?? outputCap(d)
  const opts = Object.fromEntries(
    Object.entries(d.options ?? {}).filter(([key]) => !OURS.has(snake(key)) && !SETTINGS.has(snake(key))),
  ) as JSONObject
  const options: LanguageModelV4CallOptions = {
    prompt: toPrompt(d, request),
    tools: tools.map((t) => ({
      type: 'function',
      name: t.name,
      description: t.description,
      inputSchema: t.parameters,
    })),
    ...(d.temperature !== undefined && { temperature: d.temperature }),
    ...(d.topP !== undefined && { topP: d.topP }),
    ...(d.frequencyPenalty !== undefined && { frequencyPenalty: d.frequencyPenalty }),
    ...(d.presencePenalty !== undefined && { presencePenalty: d.presencePenalty }),
    maxOutputTokens: cap,
    ...(typeof opts.seed === 'number' && { seed: opts.seed }),
    ...(typeof opts.top_k === 'number' && { topK: opts.top_k }),
    abortSignal: signal,
  }
  // a word about parallel calls is refused where there is nothing to call
  const parallel = tools.length > 0 ? d.parallelToolCalls : undefined
  return { ...options, ...FOR[speaker]({ d, opts, cap, parallel, own }) }
}

interface About {
  readonly d: ModelDefinition
  readonly opts: JSONObject
  readonly cap: number
  readonly parallel: boolean | undefined
  readonly own: boolean
}

type Special = Pick<LanguageModelV4CallOptions, 'providerOptions' | 'reasoning' | 'topK' | 'maxOutputTokens'>

const FOR: { readonly [S in Speaker]: (about: About) => Special } = {
  'openai-chat': ({ d, opts, parallel }) => ({
    ...effortOf(d),
    providerOptions: { openai: { ...camelKeys(opts), ...(parallel !== undefined && { parallelToolCalls: parallel }) } },
  }),

  'openai-responses': ({ d, opts, parallel, own }) => ({
    ...effortOf(d),
    providerOptions: {
      openai: {
        // summaries of reasoning are not shown, and asking for them needs a verified organisation
        reasoningSummary: null,
        ...(!own && { systemMessageMode: 'system' }),
        ...camelKeys(opts),
        ...(parallel !== undefined && { parallelToolCalls: parallel }),
        store: false,
      },
    },
  }),

  compatible: ({ d, opts, parallel }) => {
    const { seed: _, ...more } = opts
    const { reasoning } = effortOf(d)
    return {
      ...(reasoning && reasoning !== 'none' && { reasoning }), // `none` is not a word that all servers know
      topK: undefined, // it is among the options as it stands
      providerOptions: { [COMPATIBLE]: { ...more, ...(parallel !== undefined && { parallel_tool_calls: parallel }) } },
    }
  },

  anthropic: ({ d, opts, cap, parallel }) => {
    const { maxOutputTokens, thinking } = claudeThinking(d.thinkingBudget, cap)
    const { thinking: _, ...more } = camelKeys(opts) // its budget would come on top of the cap
    return {
      maxOutputTokens,
      ...(thinking && effortOf(d)), // without it the package would make a budget of the effort
      providerOptions: {
        anthropic: {
          // arguments streamed unchecked may be no JSON, and compatible servers do not know the parameter
          toolStreaming: false,
          ...more,
          ...(thinking && { thinking }),
          ...(parallel !== undefined && { disableParallelToolUse: !parallel }),
        },
      },
    }
  },

  google: ({ d, opts, cap }) => {
    const thinking = geminiThinking(d.model, d.thinkingBudget, cap)
    const { thinkingConfig, ...more } = camelKeys(opts)
    const config = {
      ...(isRecord(thinkingConfig) && camelKeys(thinkingConfig)),
      ...(thinking.budget !== undefined && { thinkingBudget: thinking.budget }),
    }
    return {
      ...(thinking.effort && { reasoning: thinking.effort }),
      providerOptions: { google: { ...more, ...(Object.keys(config).length > 0 && { thinkingConfig: config }) } },
    }
  },

  bedrock: ({ d, opts, cap, parallel }) => {
    const claude = isClaude(d)
    const { maxOutputTokens, thinking } = claude
      ? bedrockThinking(d.model, d.thinkingBudget, cap)
      : { maxOutputTokens: cap }
    const interleaved = thinking?.type === 'enabled' && d.options?.interleaved_thinking !== false
    const fields = isRecord(opts.additional_model_request_fields) ? opts.additional_model_request_fields : {}
    const more = {
      ...Object.fromEntries(Object.entries(fields).filter(([key]) => !CAPS.test(key))),
      ...(typeof opts.top_k === 'number' && { top_k: opts.top_k }),
    }
    const known = Object.entries(camelKeys(opts)).filter(([key]) => CONVERSE.has(key))
    return {
      maxOutputTokens,
      topK: undefined, // Converse has no such parameter, models that know it take it as a field of their own
      ...(!claude && bedrockEffort(d)),
      providerOptions: {
        amazonBedrock: {
          ...Object.fromEntries(known),
          ...(Object.keys(more).length > 0 && { additionalModelRequestFields: more }),
          ...(thinking && { reasoningConfig: thinking }),
          ...(interleaved && INTERLEAVES.test(d.model) && { anthropicBeta: [INTERLEAVED] }),
        },
        ...(claude && parallel !== undefined && { anthropic: { disableParallelToolUse: !parallel } }),
      },
    }
  },
}

/** What Converse takes besides the conversation; its package would put any other key into the request, caps too. */
const CONVERSE = new Set([
  'guardrailConfig',
  'performanceConfig',
  'requestMetadata',
  'serviceTier',
  'additionalModelResponseFieldPaths',
])
/** Fields of single models that change how much may be written. */
const CAPS = /^(?:max|thinking$|reasoning|inference|context_management$|system$|messages$|tools$)/i
const INTERLEAVED = 'interleaved-thinking-2025-05-14'

/** Nova takes no cap together with a high effort: medium is its highest under a hold. */
function bedrockEffort(d: ModelDefinition): Special {
  const { reasoning } = effortOf(d)
  if (reasoning === undefined || reasoning === 'none') return {}
  return { reasoning: d.model.includes('amazon.nova') && /high|max/.test(reasoning) ? 'medium' : reasoning }
}

function effortOf(d: ModelDefinition): Pick<LanguageModelV4CallOptions, 'reasoning'> {
  const effort = reasoningEffort(d.thinkingBudget)
  if (effort === undefined) return {}
  return { reasoning: effort }
}

const isRecord = (v: unknown): v is JSONObject => typeof v === 'object' && v !== null && !Array.isArray(v)

/** `service_tier` → `serviceTier`, as the packages spell their options. */
const camelKeys = (o: JSONObject): JSONObject =>
  Object.fromEntries(
    Object.entries(o).map(([key, value]) => [key.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase()), value]),
  )

const snake = (key: string): string => key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)
