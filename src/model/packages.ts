import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ModelDefinition } from '../domain/team.ts'
import type { AwsCredentials } from './aws-credentials.ts'
import type { Endpoint } from './endpoint.ts'

/** Which package speaks to the endpoint. */
export type Speaker = 'openai-chat' | 'openai-responses' | 'compatible' | 'anthropic' | 'google' | 'bedrock'

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
    case 'google':
      return 'google'
    case 'amazon_bedrock':
      return 'bedrock'
    case 'scripted':
      throw new Error('the scripted model needs no package')
  }
}

/** Name under which options and metadata of compatible endpoints stand. */
export const COMPATIBLE = 'compatible'
/** Sent where a package insists on a key; the listening fetch takes it out again. */
const NO_KEY = 'none'

/**
 * Loads the package, and no other: each is a bundle of its own. Address and key are always given, so that no package
 * looks for them in the environment by itself.
 * @param aws signs the requests to Bedrock where there is no key
 */
export async function loadModel(
  speaker: Speaker,
  definition: ModelDefinition,
  endpoint: Endpoint,
  fetch: typeof globalThis.fetch,
  aws: AwsCredentials | undefined,
): Promise<LanguageModelV4> {
  const settings = { baseURL: endpoint.baseUrl, apiKey: endpoint.key ?? NO_KEY, fetch }
  switch (speaker) {
    case 'openai-chat':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).chat(definition.model)
    case 'openai-responses':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).responses(definition.model)
    case 'anthropic':
      return (await import('@ai-sdk/anthropic')).createAnthropic(settings)(definition.model)
    case 'google':
      return (await import('@ai-sdk/google')).createGoogle(settings)(definition.model)
    case 'bedrock': {
      const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
      // an empty key and not none, which would be looked for in the environment
      const access = { ...settings, apiKey: endpoint.key ?? '', region: endpoint.region!, ...aws }
      const family = definition.options?.model_family === 'anthropic' ? ({ modelFamily: 'anthropic' } as const) : {}
      return createAmazonBedrock(access)(definition.model, family)
    }
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
