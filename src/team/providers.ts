import type { ModelApi } from '../domain/team.ts'
import type { Known } from './keys.ts'

/** How a built-in provider is reached. Names, addresses and variables are docker-agent's. */
export interface Provider extends Known {
  readonly api?: ModelApi
  /** left out: the address that the provider's own client uses */
  readonly baseUrl?: string
  /** the environment variable that holds the key unless `token_key` names another */
  readonly tokenKey?: string
  /** variables that may hold it, in the order in which they are looked at, where there is more than one */
  readonly tokenKeys?: readonly string[]
  /** where the address is not given here, the host that the usual key is for */
  readonly host?: string
  /** keys of `provider_opts` that docker-agent knows and that are not done here, with the reason */
  readonly refuses?: ReadonlyMap<string, string>
}

const OTHER_CREDENTIALS = "the credentials are those of the function's role, or a key"
const VERTEX = 'Vertex AI is not spoken to'
const OWN_TOOLS = "the provider's own tools are not asked for"

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
    'google',
    {
      fate: 'supported',
      note: 'the Gemini API',
      api: 'google',
      tokenKeys: ['GOOGLE_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
      host: 'generativelanguage.googleapis.com',
      refuses: new Map([
        ['project', VERTEX],
        ['location', VERTEX],
        ['google_search', OWN_TOOLS],
        ['google_maps', OWN_TOOLS],
        ['code_execution', OWN_TOOLS],
      ]),
    },
  ],
  [
    'amazon-bedrock',
    {
      fate: 'supported',
      note: "the Converse API, with the function's role or a key of Bedrock",
      api: 'amazon_bedrock',
      tokenKeys: ['AWS_BEARER_TOKEN_BEDROCK'],
      refuses: new Map([
        ['role_arn', OTHER_CREDENTIALS],
        ['role_session_name', OTHER_CREDENTIALS],
        ['external_id', OTHER_CREDENTIALS],
        ['profile', OTHER_CREDENTIALS],
        ['endpoint_url', 'write it as "base_url"'],
      ]),
    },
  ],
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
  ['atlascloud', notYet(elsewhere)],
  ['azure', notYet('its addresses and versions are its own')],
  ['baseten', notYet(elsewhere)],
  ['chatgpt', notYet('needs an interactive login')],
  ['cloudflare-ai-gateway', notYet(elsewhere)],
  ['cloudflare-workers-ai', notYet(elsewhere)],
  ['github-copilot', notYet('needs an interactive login')],
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
