import type { JSONObject, LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { DEFAULT_OUTPUT_CAP } from '../domain/limits.ts'
import type { ModelDefinition } from '../domain/team.ts'
import type { ModelRequest } from '../ports.ts'
import type { Endpoint } from './endpoint.ts'
import { toPrompt } from './prompt.ts'
import { anthropicThinking, reasoningEffort } from './thinking.ts'

/** Which package speaks to the endpoint. */
export type Speaker = 'openai-chat' | 'openai-responses' | 'compatible' | 'anthropic'

/**
 * OpenAI's own chat completions are spoken by its package, which knows its models (`developer` role,
 * `max_completion_tokens`). Any other endpoint of that API gets the plain form that all compatible servers know, and may
 * answer with what they add (`reasoning_content`). The responses API has one package only.
 */
export function speakerOf(definition: ModelDefinition, endpoint: Endpoint): Speaker {
  switch (definition.api) {
    case 'openai_chatcompletions':
      return endpoint.own ? 'openai-chat' : 'compatible'
    case 'openai_responses':
      return 'openai-responses'
    case 'openai_compatible':
      return 'compatible'
    case 'anthropic':
      return 'anthropic'
    case 'scripted':
      throw new Error('the scripted model needs no package')
  }
}

/** Name under which options and metadata of compatible endpoints stand. */
const COMPATIBLE = 'compatible'
/** Sent where a package insists on a key; the listening fetch takes it out again. */
const NO_KEY = 'none'

/**
 * Loads the package, and no other: each is a bundle of its own. Address and key are always given, so that no package
 * looks for them in the environment by itself.
 */
export async function loadModel(
  speaker: Speaker,
  definition: ModelDefinition,
  endpoint: Endpoint,
  fetch: typeof globalThis.fetch,
): Promise<LanguageModelV4> {
  const settings = { baseURL: endpoint.baseUrl, apiKey: endpoint.key ?? NO_KEY, fetch }
  switch (speaker) {
    case 'openai-chat':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).chat(definition.model)
    case 'openai-responses':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).responses(definition.model)
    case 'anthropic':
      return (await import('@ai-sdk/anthropic')).createAnthropic(settings)(definition.model)
    case 'compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      return createOpenAICompatible({
        ...settings,
        name: COMPATIBLE,
        includeUsage: true,
        transformRequestBody: newCapName,
      }).chatModel(definition.model)
    }
  }
}

/** OpenAI's newer models refuse `max_tokens`, also behind a gateway. */
function newCapName(body: Record<string, unknown>): Record<string, unknown> {
  if (body.max_tokens === undefined || !/^(o\d|gpt-[5-9])/.test(String(body.model))) return body
  const { max_tokens: cap, ...rest } = body
  return { ...rest, max_completion_tokens: cap }
}

/** Keys of `provider_opts` that would change what is asked, what is streamed, or what a call may cost at most. */
const OURS = new Set([
  'model',
  'messages',
  'input',
  'instructions',
  'tools',
  'n',
  'stream',
  'stream_options',
  'store',
  'conversation',
  'previous_response_id',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
])
/** docker-agent's own, which are no parameters of a request. */
const DOCKER_AGENTS = new Set(['interleaved_thinking', 'rerank_prompt', 'runtime_flags'])

/** Everything that one call is made with. */
export function callOptions(
  speaker: Speaker,
  request: ModelRequest,
  own: boolean,
  signal: AbortSignal,
): LanguageModelV4CallOptions {
  const { definition: d, tools } = request
  const cap = request.maxOutputTokens ?? d.maxTokens
  const opts = Object.fromEntries(
    Object.entries(d.options ?? {}).filter(([key]) => !OURS.has(snake(key)) && !DOCKER_AGENTS.has(snake(key))),
  ) as JSONObject
  const effort = reasoningEffort(d.thinkingBudget)
  const options: LanguageModelV4CallOptions = {
    prompt: toPrompt(d.api, request),
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
    ...(cap !== undefined && { maxOutputTokens: cap }),
    ...(effort && { reasoning: effort }),
    ...(typeof opts.seed === 'number' && { seed: opts.seed }),
    ...(typeof opts.top_k === 'number' && { topK: opts.top_k }),
    abortSignal: signal,
  }
  // a word about parallel calls is refused where there is nothing to call
  const parallel = tools.length > 0 ? d.parallelToolCalls : undefined
  switch (speaker) {
    case 'openai-chat':
      options.providerOptions = {
        openai: { ...camelKeys(opts), ...(parallel !== undefined && { parallelToolCalls: parallel }) },
      }
      break
    case 'openai-responses':
      options.providerOptions = {
        openai: {
          // summaries of reasoning are not shown, and asking for them needs a verified organisation
          reasoningSummary: null,
          ...(!own && { systemMessageMode: 'system' }),
          ...camelKeys(opts),
          ...(parallel !== undefined && { parallelToolCalls: parallel }),
          store: false,
        },
      }
      break
    case 'compatible': {
      const { seed: _, ...more } = opts
      options.providerOptions = {
        [COMPATIBLE]: { ...more, ...(parallel !== undefined && { parallel_tool_calls: parallel }) },
      }
      delete options.topK // it is among the options as it stands
      if (options.reasoning === 'none') delete options.reasoning // not a word that all servers know
      break
    }
    case 'anthropic': {
      const thinking = anthropicThinking(d.thinkingBudget, cap ?? DEFAULT_OUTPUT_CAP)
      options.maxOutputTokens = thinking.maxOutputTokens
      if (!thinking.thinking) delete options.reasoning // the package would make a budget of it
      const { thinking: _, ...more } = camelKeys(opts) // its budget would come on top of the cap
      options.providerOptions = {
        anthropic: {
          // arguments streamed unchecked may be no JSON, and compatible servers do not know the parameter
          toolStreaming: false,
          ...more,
          ...(thinking.thinking && { thinking: thinking.thinking }),
          ...(parallel !== undefined && { disableParallelToolUse: !parallel }),
        },
      }
    }
  }
  return options
}

/** `service_tier` → `serviceTier`, as the packages spell their options. */
const camelKeys = (o: JSONObject): JSONObject =>
  Object.fromEntries(
    Object.entries(o).map(([key, value]) => [key.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase()), value]),
  )

const snake = (key: string): string => key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)
