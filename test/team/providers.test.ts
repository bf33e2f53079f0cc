import { describe, expect, test } from 'vitest'
import { PRICED, problemsOf, teamOf, withModel } from './team-text.ts'

const COST = 'cost: { input: 1, output: 2, cache_read: 0.1, cache_write: 1.25 }'

describe('a provider of the file', () => {
  const custom = (provider: string, model = 'provider: mine\nmodel: x') => `providers:
  mine: ${provider}
${withModel(`${model}\n${COST}`)}`

  test('gives its models API, address and key; a model may say otherwise', () => {
    const provider = '{ api_type: openai_responses, base_url: "https://llm.example.com/v1", token_key: LLM_KEY }'
    expect(teamOf(custom(provider)).models.m).toMatchObject({
      provider: 'mine',
      api: 'openai_responses',
      baseUrl: 'https://llm.example.com/v1',
      tokenKey: 'LLM_KEY',
    })
    const own = `provider: mine
model: x
base_url: http://127.0.0.1:9/v1
token_key: OTHER_KEY
provider_opts: { api_type: openai_chatcompletions }`
    expect(teamOf(custom(provider, own)).models.m).toMatchObject({
      api: 'openai_chatcompletions',
      baseUrl: 'http://127.0.0.1:9/v1',
      tokenKey: 'OTHER_KEY',
    })
  })

  test('speaks chat completions without a key unless it says otherwise', () => {
    const { m } = teamOf(custom('{ base_url: "http://localhost:11434/v1" }')).models
    expect(m).toMatchObject({ api: 'openai_chatcompletions', baseUrl: 'http://localhost:11434/v1' })
    expect(m).not.toHaveProperty('tokenKey')
  })

  test('goes before a built-in one of the same name, also inline', () => {
    const text =
      'providers: { mistral: { base_url: "https://eu.example.com/v1" } }\nagents: { root: { model: mistral/small } }'
    expect(teamOf(text).models['mistral/small']?.baseUrl).toBe('https://eu.example.com/v1')
  })

  test.each([
    ['{}', '2:3 error: "providers.mine" must say "base_url"'],
    ['{ base_url: "ftp://x" }', '2:21 error: "providers.mine.base_url" must be an address'],
    [
      '{ base_url: "https://x.example", api_type: openai_chat }',
      '2:52 error: "providers.mine.api_type" must be openai_chatco',
    ],
    [
      '{ base_url: "https://x.example", token_key: AWS_SESSION_TOKEN }',
      '2:53 error: "providers.mine.token_key" must not be',
    ],
    ['{ base_url: "https://x.example", headers: {} }', '2:42 error: "headers" is not supported by this version'],
    [
      '{ base_url: "https://x.example", api_typ: x }',
      '2:42 error: "api_typ" is not a key of providers.mine (did you mean "',
    ],
    ['https://x.example', '2:9 error: "providers.mine" must be a mapping'],
  ])('%s is refused', (provider, expected) => {
    const found = problemsOf(custom(provider)).filter(
      (p) => (p.startsWith('2:') && !p.startsWith('2:3 error: "providers.mine" must say')) || provider === '{}',
    )
    expect(found, found.join('\n')).toHaveLength(1)
    expect(found[0]?.slice(0, expected.length)).toBe(expected)
  })

  test('cannot have a slash in its name', () => {
    const text = `providers: { a/b: { base_url: "https://x.example" } }\nagents: { root: { model: fast } }\n${PRICED}`
    expect(problemsOf(text)[0]).toMatch(/^1:14 error: "a\/b" cannot name a provider/)
  })
})
