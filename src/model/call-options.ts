import type { JSONObject, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { isObject } from '../domain/objects.ts'
import { outputCap } from '../domain/output-caps.ts'
import { sentOptions, snakeCase } from '../domain/provider-options.ts'
import type { ModelDefinition } from '../domain/team.ts'
import type { ModelRequest } from '../ports.ts'
import { COMPATIBLE, type Speaker } from './packages.ts'
import { isClaude, toPrompt } from './prompt.ts'
import { bedrockThinking, claudeThinking, geminiThinking, INTERLEAVES, reasoningEffort } from './thinking.ts'

/** Everything that one call is made with. */
export function callOptions(
  speaker: Speaker,
  request: ModelRequest,
  own: boolean,
  signal: AbortSignal,
): LanguageModelV4CallOptions {
  const { definition: d, tools } = request
  const cap = request.maxOutputTokens ?? outputCap(d)
  const sent = sentOptions(d) as JSONObject
  // a compatible server is told them as they stand
  const opts = speaker === 'compatible' ? sent : snakeKeys(sent)
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

type Special = Pick<
  LanguageModelV4CallOptions,
  'providerOptions' | 'reasoning' | 'topK' | 'maxOutputTokens' | 'stopSequences'
>

const FOR: { readonly [S in Speaker]: (about: About) => Special } = {
  'openai-chat': ({ d, opts, parallel }) => ({
    ...effortOf(d),
    ...stopsOf(opts),
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
    const { metadata, ...more } = camelKeys(opts)
    const between = thinking?.type === 'enabled' && d.options?.interleaved_thinking === true
    return {
      maxOutputTokens,
      ...stopsOf(opts),
      ...(thinking && effortOf(d)), // without it the package would make a budget of the effort
      providerOptions: {
        anthropic: {
          // arguments streamed unchecked may be no JSON, and compatible servers do not know the parameter
          toolStreaming: false,
          ...more,
          ...(isRecord(metadata) && { metadata: camelKeys(metadata) }),
          ...(between && INTERLEAVES.test(d.model) && { anthropicBeta: withBeta(more.anthropicBeta) }),
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
      ...stopsOf(opts),
      providerOptions: { google: { ...more, ...(Object.keys(config).length > 0 && { thinkingConfig: config }) } },
    }
  },

  bedrock: ({ d, opts, cap, parallel }) => {
    const claude = isClaude(d)
    const { maxOutputTokens, thinking } = claude
      ? bedrockThinking(d.model, d.thinkingBudget, cap)
      : { maxOutputTokens: cap }
    const interleaved = thinking?.type === 'enabled' && d.options?.interleaved_thinking !== false
    const { additionalModelRequestFields: fields, topK, stop: _, stopSequences: __, ...more } = camelKeys(opts)
    const { anthropic_beta: betas, ...own } = isRecord(fields) ? fields : {}
    const asked = { ...own, ...(typeof topK === 'number' && { top_k: topK }) }
    const beta = interleaved && INTERLEAVES.test(d.model) ? withBeta(betas) : betas
    return {
      maxOutputTokens,
      topK: undefined, // Converse has no such parameter, models that know it take it as a field of their own
      ...stopsOf(opts),
      ...(!claude && bedrockEffort(d)),
      providerOptions: {
        amazonBedrock: {
          ...more,
          ...(Object.keys(asked).length > 0 && { additionalModelRequestFields: asked }),
          ...(thinking && { reasoningConfig: thinking }),
          ...(beta !== undefined && { anthropicBeta: beta }),
        },
        ...(claude && parallel !== undefined && { anthropic: { disableParallelToolUse: !parallel } }),
      },
    }
  },
}

const INTERLEAVED = 'interleaved-thinking-2025-05-14'
const withBeta = (betas: unknown): string[] => [...new Set([...(Array.isArray(betas) ? betas : []), INTERLEAVED])]

/** Texts at which the answer ends, one or a list, as OpenAI or as the others name them. */
function stopsOf(opts: JSONObject): Special {
  const stops = [opts.stop_sequences ?? opts.stop].flat().filter((s) => typeof s === 'string')
  return stops.length > 0 ? { stopSequences: stops } : {}
}

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

const isRecord = (v: unknown): v is JSONObject => isObject(v)

/** `service_tier` → `serviceTier`, as the packages spell their options. */
const camelKeys = (o: JSONObject): JSONObject =>
  Object.fromEntries(
    Object.entries(o).map(([key, value]) => [key.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase()), value]),
  )

const snakeKeys = (o: JSONObject): JSONObject =>
  Object.fromEntries(Object.entries(o).map(([key, value]) => [snakeCase(key), value]))
