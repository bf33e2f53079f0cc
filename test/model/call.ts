import type { ModelApi, ModelDefinition } from '../../src/domain/team.ts'
import type { TokenUsage } from '../../src/domain/usage.ts'
import type { ModelRequest, ToolSpec } from '../../src/ports.ts'

export const KEY = 'sk-test-0123456789abcdef'
export const env = (name: string): string | undefined => (name === 'TEST_KEY' ? KEY : undefined)

export const listFiles: ToolSpec = {
  name: 'list_files',
  description: 'Lists files',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}

/** The base URL of a provider-shaped server, with the version that each API's clients expect. */
export const baseUrl = (server: { readonly url: string }): string => `${server.url}/v1`

export const definition = (api: ModelApi, more: Partial<ModelDefinition> = {}): ModelDefinition => ({
  provider: 'test',
  api,
  model: 'test-model',
  tokenKey: 'TEST_KEY',
  ...more,
})

export const request = (def: ModelDefinition, more: Partial<ModelRequest> = {}): ModelRequest => ({
  definition: def,
  system: 'You help.', // 9 bytes
  messages: [{ role: 'user', content: 'How many files are there?' }], // 25 bytes
  tools: [],
  signal: new AbortController().signal,
  call: { sessionId: 's', n: 0, driver: 'd' },
  ...more,
})

/** Input that is booked for `request` when its provider said nothing: 34 bytes, four a token. */
export const ESTIMATED_INPUT = 9

export const tokens = (inputTokens: number, outputTokens: number, more: Partial<TokenUsage> = {}): TokenUsage => ({
  inputTokens,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens,
  reasoningTokens: 0,
  ...more,
})
