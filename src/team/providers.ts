import type { ModelApi } from '../domain/team.ts'
import type { Known } from './keys.ts'

/** How a built-in provider is reached. Names, addresses and variables are docker-agent's. */
export interface Provider extends Known {
  readonly api?: ModelApi
  /** left out: the address that the provider's own client uses */
  readonly baseUrl?: string
  /** the environment variable that holds the key unless `token_key` names another */
  readonly tokenKey?: string
}

const compatible = (baseUrl: string, tokenKey: string): Provider => ({
  fate: 'supported',
  note: `chat completions at ${baseUrl}`,
  api: 'openai_compatible',
  baseUrl,
  tokenKey,
})
const notYet = (note: string): Provider => ({ fate: 'not yet', note })
const elsewhere = 'name its OpenAI-compatible endpoint under `providers`'

export const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  [
    'openai',
    {
      fate: 'supported',
      note: 'the responses API for gpt-4.1, gpt-5, the o series and codex models, chat completions for all others',
      tokenKey: 'OPENAI_API_KEY',
    },
  ],
  ['anthropic', { fate: 'supported', note: 'the messages API', api: 'anthropic', tokenKey: 'ANTHROPIC_API_KEY' }],
  [
    'scripted',
    {
      fate: 'supported',
      note: 'answers from a script in `provider_opts`, without network and key; for demos and tests',
      api: 'scripted',
      from: 'subledger',
    },
  ],
  ['cerebras', compatible('https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY')],
  ['deepseek', compatible('https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY')],
  ['fireworks', compatible('https://api.fireworks.ai/inference/v1', 'FIREWORKS_API_KEY')],
  ['groq', compatible('https://api.groq.com/openai/v1', 'GROQ_API_KEY')],
  ['mistral', compatible('https://api.mistral.ai/v1', 'MISTRAL_API_KEY')],
  ['openrouter', compatible('https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY')],
  ['together', compatible('https://api.together.xyz/v1', 'TOGETHER_API_KEY')],
  ['xai', compatible('https://api.x.ai/v1', 'XAI_API_KEY')],
  ['amazon-bedrock', notYet('its API is not spoken')],
  ['atlascloud', notYet(elsewhere)],
  ['azure', notYet('its addresses and versions are its own')],
  ['baseten', notYet(elsewhere)],
  ['chatgpt', notYet('needs an interactive login')],
  ['cloudflare-ai-gateway', notYet(elsewhere)],
  ['cloudflare-workers-ai', notYet(elsewhere)],
  ['github-copilot', notYet('needs an interactive login')],
  ['google', notYet('its API is not spoken')],
  ['huggingface', notYet(elsewhere)],
  ['minimax', notYet(elsewhere)],
  ['moonshot', notYet(elsewhere)],
  ['nebius', notYet(elsewhere)],
  ['nvidia', notYet(elsewhere)],
  ['opencode-go', notYet(elsewhere)],
  ['opencode-zen', notYet(elsewhere)],
  ['ovhcloud', notYet(elsewhere)],
  ['requesty', notYet(elsewhere)],
  ['vercel', notYet(elsewhere)],
  ['dmr', { fate: 'no place on Lambda', note: 'Docker Model Runner serves models on the same machine' }],
  [
    'ollama',
    {
      fate: 'no place on Lambda',
      note: 'it serves models on the same machine; to use it locally, name its endpoint under `providers`',
    },
  ],
])

/** The APIs that `api_type` may ask for. */
export const API_TYPES = ['openai_chatcompletions', 'openai_responses'] as const

/**
 * The API of an OpenAI model where the file does not choose: docker-agent's rule. The newer models are served by the
 * responses API; gpt-5 and the o series lose their reasoning between tool calls on chat completions.
 */
export function openaiApi(model: string): ModelApi {
  const m = model.toLowerCase()
  const newer = ['gpt-4.1', 'gpt-5', 'o1', 'o3', 'o4', 'codex'].some((prefix) => m.startsWith(prefix))
  return newer || m.includes('-codex') ? 'openai_responses' : 'openai_chatcompletions'
}
