import { DEFAULT_OUTPUT_CAP } from './limits.ts'
import type { ModelDefinition } from './team.ts'

/**
 * The most output tokens that a call may have: what the team file gives or else the default, lowered for models that
 * refuse a request for so many. The hold is computed with it, and it is sent with the call, so that no answer can cost
 * more than was set aside.
 */
export function outputCap(model: Pick<ModelDefinition, 'model' | 'maxTokens'>): number {
  if (model.maxTokens !== undefined) return model.maxTokens
  const name = model.model.toLowerCase()
  const known = SMALL.find(([pattern]) => pattern.test(name))
  return known ? known[1] : DEFAULT_OUTPUT_CAP
}

/** The fewest output tokens that a call is still made for where the budget is short. */
const LEAST_OUTPUT_CAP = 1_024

/**
 * How far a call's output cap may shrink where the budget does not cover the whole of it: to what the team file says
 * (`min_tokens`), or else to so many tokens that an answer is still of use, beyond those that it may reason with.
 */
export function leastOutputCap(model: Pick<ModelDefinition, 'model' | 'maxTokens' | 'minTokens' | 'thinkingBudget'>) {
  const cap = outputCap(model)
  const thinking = typeof model.thinkingBudget === 'number' && model.thinkingBudget > 0 ? model.thinkingBudget : 0
  return Math.min(cap, model.minTokens ?? LEAST_OUTPUT_CAP + thinking)
}

/**
 * Models that write less than the default, by name wherever it stands in the id (`us.anthropic.claude-…`,
 * `openai/gpt-4o`); the first row that fits counts. From the makers' own lists; a model that is missing is asked for the
 * default, and if it refuses, the refusal is free and says so.
 */
const SMALL: readonly (readonly [RegExp, number])[] = [
  // OpenAI
  [/gpt-3\.5|gpt-4-turbo|gpt-4-(?:1106|0125|vision)|gpt-4o-2024-05-13/, 4_096],
  [/gpt-4-32k/, 8_192],
  [/gpt-4o|gpt-4\.5|gpt-5[\d.]*-chat/, 16_384],
  // its window is 8,192 for question and answer together
  [/gpt-4(?:-0\d{3})?$/, 4_096],
  // Anthropic, there and on Bedrock
  [/claude-(?:instant|v?2)|claude-3-(?:opus|sonnet|haiku)/, 4_096],
  [/claude-3-5/, 8_192],
  [/claude-opus-4(?:-[01])?(?:-\d{8}|@\d{8}|$)/, 32_000],
  // Google
  [/gemini-1\.0|gemini-pro(?:-vision)?$/, 2_048],
  [/gemini-1\.5|gemini-2\.0|gemma-/, 8_192],
  [/gemini-2\.5-\w+-preview-tts/, 16_384],
  // Bedrock
  [/amazon\.nova-(?:micro|lite|pro|premier)-/, 10_000],
  [/titan-text-premier/, 3_072],
  [/titan-text-lite|titan-tg1/, 4_096],
  [/titan-text/, 8_192],
  [/meta\.llama3-(?:70b|8b)/, 2_048],
  [/meta\.llama3/, 4_096],
  [/meta\.llama4/, 8_192],
  [/cohere\.command/, 4_000],
  [/ai21\.jamba|mistral\.mixtral/, 4_096],
  [/mistral\.(?:mistral|pixtral)/, 8_192],
  // Groq and DeepSeek
  [/llama3-\d+b-8192|gemma2?-\d|llama-4-(?:scout|maverick)/, 8_192],
  [/kimi-k2|qwen3-32b|qwen-qwq/, 16_384],
  [/deepseek-chat/, 8_192],
]
