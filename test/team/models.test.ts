import { describe, expect, test } from 'vitest'
import { PROVIDERS } from '../../src/team/providers.ts'
import { modelOf, parse, problemsOf, teamOf, withModel } from './team-text.ts'

const COST = 'cost: { input: 1, output: 2, cache_read: 0.1, cache_write: 1.25 }'
const openai = (more: string) => withModel(`provider: openai\nmodel: gpt-4o\n${COST}\n${more}`)

describe('a model that is refused', () => {
  test.each([
    [
      'temperature too high',
      'temperature: 2.1',
      '8:18 error: "models.m.temperature" must be a number from 0 to 2, not "2.1"',
    ],
    ['temperature as a word', 'temperature: warm', '8:18 error: "models.m.temperature" must be a number'],
    ['temperature not a number', 'temperature: .nan', '8:18 error: "models.m.temperature" must be a number'],
    ['max_tokens 0', 'max_tokens: 0', '8:17 error: "models.m.max_tokens" must be a whole number from 1 to 10000000'],
    ['max_tokens in hexadecimal', 'max_tokens: 0x10', '8:17 error: "models.m.max_tokens" must be a whole number'],
    ['top_p', 'top_p: 2', '8:12 error: "models.m.top_p" must be a number from 0 to 1'],
    [
      'frequency_penalty',
      'frequency_penalty: 3',
      '8:24 error: "models.m.frequency_penalty" must be a number from -2 to 2',
    ],
    [
      'presence_penalty',
      'presence_penalty: -3',
      '8:23 error: "models.m.presence_penalty" must be a number from -2 to 2',
    ],
    [
      'parallel_tool_calls',
      'parallel_tool_calls: 1',
      '8:26 error: "models.m.parallel_tool_calls" must be true or false',
    ],
    ['usage not tracked', 'track_usage: false', '8:18 error: "track_usage" cannot be switched off'],
    ['provider_opts as a list', 'provider_opts: [a]', '8:20 error: "models.m.provider_opts" must be a mapping'],
    ['infinite option', 'provider_opts: { seed: .inf }', '8:28 error: ".inf" is not a number that JSON can hold'],
    [
      'unknown API',
      'provider_opts: { api_type: openai }',
      '8:32 error: "models.m.provider_opts.api_type" must be openai_chat',
    ],
    [
      'thinking as it is not known',
      'thinking_budget: hard',
      '8:22 error: "models.m.thinking_budget" must be a number of tokens from 1 to 1000000, or one of the words none, ',
    ],
    ['routing', 'routing: []', '8:5 error: "routing" is not supported by this version'],
    ['a slip', 'temprature: 1', '8:5 error: "temprature" is not a key of models.m (did you mean "temperature"?)'],
    [
      'http',
      'base_url: http://example.com/v1',
      '8:15 error: "models.m.base_url" must begin with https://; http is for',
    ],
    [
      'http that looks like loopback',
      'base_url: http://127.0.0.1.example.com',
      '8:15 error: "models.m.base_url" must begin',
    ],
    [
      'another protocol',
      'base_url: file:///etc/passwd',
      '8:15 error: "models.m.base_url" must be an address that begins',
    ],
    ['no address', 'base_url: example', '8:15 error: "models.m.base_url" must be an address that begins with https://'],
    [
      'a password in the address',
      'base_url: https://u:p@example.com',
      '8:15 error: "models.m.base_url" must not hold a user',
    ],
    [
      'a query in the address',
      'base_url: https://example.com?key=x',
      '8:15 error: "models.m.base_url" must end with its path',
    ],
    ['a placeholder', `base_url: "https://${'$'}{env.HOST}/v1"`, '8:15 error: "models.m.base_url" holds a placeholder'],
    [
      'credentials of the function',
      'token_key: AWS_SECRET_ACCESS_KEY',
      '8:16 error: "models.m.token_key" must not be AWS_',
    ],
    ['its own settings', 'token_key: subledger_token', '8:16 error: "models.m.token_key" must not be subledger_token'],
  ])('%s', (_what, more, expected) => {
    const found = problemsOf(openai(more))
    expect(found, found.join('\n')).toHaveLength(1)
    expect(found[0]?.slice(0, expected.length)).toBe(expected)
    expect(parse(openai(more)).team).toBeUndefined()
  })

  test('a key itself in token_key, without repeating it', () => {
    expect(problemsOf(openai('token_key: sk-proj-abc'))).toEqual([
      '8:16 error: "models.m.token_key" must be the name of an environment variable, never the key itself',
    ])
  })

  test.each([
    ['that is text', 'openai/gpt-4o', '5:5 error: "models.m" must be a mapping of keys to values'],
    ['without provider', `model: x\n${COST}`, '4:3 error: "models.m" must say "provider"'],
    ['without model', `provider: openai\n${COST}`, '4:3 error: "models.m" must say "model"'],
    [
      'of an unknown provider',
      `provider: opnai\nmodel: x\n${COST}`,
      '5:15 error: there is no provider "opnai" (did you mean',
    ],
    [
      'of a provider nothing is near to',
      `provider: mine\nmodel: x\n${COST}`,
      '5:15 error: there is no provider "mine"; name it',
    ],
    ['of azure', `provider: azure\nmodel: x\n${COST}`, '5:15 error: "azure" is not supported by this'],
    ['of ollama', `provider: ollama\nmodel: x\n${COST}`, '5:15 error: "ollama" has no place on Lambda'],
    ['with a name of spaces', `provider: openai\nmodel: a b\n${COST}`, '6:12 error: "a b" cannot name a model'],
    [
      'scripted without a script',
      `provider: scripted\n${COST}`,
      '4:3 error: "models.m" must have its script in "provider_',
    ],
    [
      'openai with a word of anthropic',
      `provider: openai\nmodel: o3\n${COST}\nthinking_budget: adaptive`,
      '8:22 error: "models.m.thinking',
    ],
    [
      'anthropic with too few',
      `provider: anthropic\nmodel: c\n${COST}\nthinking_budget: 100`,
      '8:22 error: "models.m.thinking_',
    ],
    [
      'bedrock with too few',
      `provider: amazon-bedrock\nmodel: c\n${COST}\nthinking_budget: 100`,
      '8:22 error: "models.m.thinking_',
    ],
    [
      'google with a word of Claude',
      `provider: google\nmodel: c\n${COST}\nthinking_budget: max`,
      '8:22 error: "models.m.thinking_',
    ],
    [
      'google by another API',
      `provider: google\nmodel: c\n${COST}\nprovider_opts: {api_type: openai_responses}`,
      '5:15 error: the provider "google" has one API',
    ],
    ...['role_arn', 'role_session_name', 'external_id', 'profile', 'endpoint_url'].map(
      (key): [string, string, string] => [
        `bedrock with ${key}`,
        `provider: amazon-bedrock\nmodel: c\n${COST}\nprovider_opts: {${key}: x}`,
        `8:21 error: "${key}" is not supported by this version: `,
      ],
    ),
    ...['project', 'location', 'google_search', 'google_maps', 'code_execution'].map(
      (key): [string, string, string] => [
        `google with ${key}`,
        `provider: google\nmodel: c\n${COST}\nprovider_opts: {${key}: x}`,
        `8:21 error: "${key}" is not supported by this version: `,
      ],
    ),
    [
      'bedrock in a region that is none',
      `provider: amazon-bedrock\nmodel: c\n${COST}\nprovider_opts: {region: x.evil.com}`,
      '8:29 error: "models.m.provider_opts.region" must name a region, not "x.evil.com"',
    ],
    [
      'bedrock elsewhere without a key',
      `provider: amazon-bedrock\nmodel: c\n${COST}\nbase_url: https://llm.example.com`,
      "8:15 error: credentials of AWS go to AWS's own hosts only; name the key of llm.example.com",
    ],
    [
      'bedrock with credentials as its key',
      `provider: amazon-bedrock\nmodel: c\n${COST}\ntoken_key: AWS_SECRET_ACCESS_KEY`,
      '8:16 error: "models.m.token_key" must not be AWS_',
    ],
    [
      'openai with the key of bedrock',
      `provider: openai\nmodel: c\n${COST}\ntoken_key: AWS_BEARER_TOKEN_BEDROCK`,
      '8:16 error: "models.m.token_key" must not be AWS_',
    ],
    [
      'stream as a word',
      `provider: mistral\nmodel: c\n${COST}\nprovider_opts: {stream: never}`,
      '8:29 error: "models.m.provider_opts.stream" must be true or false',
    ],
    [
      'anthropic by another API',
      `provider: anthropic\nmodel: c\n${COST}\nprovider_opts: {api_type: openai_responses}`,
      '5:15 er',
    ],
  ])('%s', (_what, model, expected) => {
    const found = problemsOf(withModel(model))
    expect(found, found.join('\n')).toHaveLength(1)
    expect(found[0]?.slice(0, expected.length)).toBe(expected)
  })

  test('without a model is told of a slip in its provider too', () => {
    expect(problemsOf(withModel(`provider: scriptd\n${COST}`))).toEqual([
      '4:3 error: "models.m" must say "model": the provider\'s name of it',
      '5:15 error: there is no provider "scriptd" (did you mean "scripted"?)',
    ])
  })

  test('is the one after the hundredth', () => {
    const models = Array.from({ length: 101 }, (_, i) => `  m${i}: { provider: openai, model: x, ${COST} }`).join('\n')
    expect(problemsOf(`agents: { root: { model: m0 } }\nmodels:\n${models}`)).toEqual([
      '103:3 error: a team has at most 100 models; this one has 101',
    ])
  })
})

describe('a model', () => {
  test('keeps every setting', () => {
    const model = modelOf(`provider: openai
model: gpt-4o
temperature: 0.7
max_tokens: 1000
min_tokens: 100
top_p: 1e-1
frequency_penalty: -0.5
presence_penalty: 0.5
parallel_tool_calls: false
track_usage: true
thinking_budget: low
base_url: http://127.0.0.1:8080/v1
token_key: MY_KEY
provider_opts: { user: me, response_format: { list: [1, "2", null, true] } }
${COST}`)
    expect(model).toEqual({
      provider: 'openai',
      api: 'openai_chatcompletions',
      model: 'gpt-4o',
      baseUrl: 'http://127.0.0.1:8080/v1',
      tokenKey: 'MY_KEY',
      maxTokens: 1000,
      minTokens: 100,
      temperature: 0.7,
      topP: 0.1,
      frequencyPenalty: -0.5,
      presencePenalty: 0.5,
      parallelToolCalls: false,
      thinkingBudget: 'low',
      options: { user: 'me', response_format: { list: [1, '2', null, true] } },
      cost: { input: '1', output: '2', cacheRead: '0.1', cacheWrite: '1.25' },
    })
  })

  test.each([
    ['gpt-4o', 'openai_chatcompletions'],
    ['gpt-3.5-turbo', 'openai_chatcompletions'],
    ['gpt-4.1-mini', 'openai_responses'],
    ['gpt-5', 'openai_responses'],
    ['GPT-5-nano', 'openai_responses'],
    ['o1', 'openai_responses'],
    ['o4-mini', 'openai_responses'],
    ['codex-mini-latest', 'openai_responses'],
  ])('openai/%s is spoken to by %s', (model, api) => {
    expect(modelOf(`provider: openai\nmodel: ${model}\n${COST}`)).toMatchObject({ api, tokenKey: 'OPENAI_API_KEY' })
  })

  test('of openai takes the API that the file asks for, which is no option of the call', () => {
    const model = modelOf(
      `provider: openai\nmodel: gpt-5\n${COST}\nprovider_opts: { api_type: openai_chatcompletions }`,
    )
    expect(model?.api).toBe('openai_chatcompletions')
    expect(model).not.toHaveProperty('options')
  })

  test.each([
    ['anthropic', '8192', 8192],
    ['anthropic', '-1', -1],
    ['anthropic', 'adaptive', 'adaptive'],
    ['anthropic', '0', 'none'],
    ['openai', 'high', 'high'],
    ['openai', '500', 500],
    ['openai', 'none', 'none'],
  ])('of %s may think %s', (provider, budget, thinkingBudget) => {
    const model = modelOf(`provider: ${provider}\nmodel: x\n${COST}\nthinking_budget: ${budget}`)
    expect(model).toMatchObject({ thinkingBudget })
  })

  test.each([...PROVIDERS].filter(([, p]) => p.api === 'openai_compatible'))(
    'of %s is reached at its address',
    (name, p) => {
      expect(modelOf(`provider: ${name}\nmodel: x\n${COST}`)).toMatchObject({
        provider: name,
        api: 'openai_compatible',
        baseUrl: p.baseUrl,
        tokenKey: p.tokenKey,
      })
      expect(p.baseUrl).toMatch(/^https:\/\//)
      expect(p.tokenKey).toMatch(/_API_KEY$/)
    },
  )

  test('sends the usual key of its provider to the host of that provider only', () => {
    const elsewhere = 'base_url: https://gateway.example.com/v1'
    expect(modelOf(`provider: openai\nmodel: x\n${COST}\n${elsewhere}`)).not.toHaveProperty('tokenKey')
    expect(problemsOf(openai(elsewhere))).toEqual([
      '4:3 warning: no key is sent to gateway.example.com; if it wants one, name its variable as "token_key" (OPENAI_API_KEY goes to the provider\'s own host unless it is named)',
    ])
    expect(problemsOf(openai('base_url: https://api.openai.com/v1'))).toEqual([])
    expect(modelOf(`provider: openai\nmodel: x\n${COST}\nbase_url: https://api.openai.com/v1`)?.tokenKey).toBe(
      'OPENAI_API_KEY',
    )
    expect(problemsOf(openai('base_url: http://localhost:1234/v1'))).toEqual([])
    expect(modelOf(`provider: openai\nmodel: x\n${COST}\nbase_url: http://localhost:1/v1`)).not.toHaveProperty(
      'tokenKey',
    )
  })

  test('gives a warning when it names the key of one provider for the host of another', () => {
    expect(problemsOf(openai('base_url: https://gateway.example.com/v1\ntoken_key: MISTRAL_API_KEY'))).toEqual([
      '4:3 warning: the key in MISTRAL_API_KEY will be sent to gateway.example.com',
    ])
    expect(problemsOf(openai('base_url: https://gateway.example.com/v1\ntoken_key: GATEWAY_KEY'))).toEqual([])
  })
})

describe('a model of a provider with credentials of its own kind', () => {
  test('of google names no key: the first one that is set is taken when it is called', () => {
    const model = modelOf(`provider: google\nmodel: gemini-2.5-flash\n${COST}\nthinking_budget: -1`)
    expect(model).toEqual({
      provider: 'google',
      api: 'google',
      model: 'gemini-2.5-flash',
      thinkingBudget: -1,
      cost: { input: '1', output: '2', cacheRead: '0.1', cacheWrite: '1.25' },
    })
    const elsewhere = `provider: google\nmodel: x\n${COST}\nbase_url: https://llm.example.com`
    expect(problemsOf(withModel(elsewhere))[0]).toContain('warning: no key is sent to llm.example.com')
    const home = 'base_url: https://generativelanguage.googleapis.com/v1beta'
    expect(problemsOf(withModel(`provider: google\nmodel: x\n${COST}\n${home}`))).toEqual([])
    const named = `provider: mistral\nmodel: x\n${COST}\ntoken_key: GEMINI_API_KEY`
    expect(problemsOf(withModel(named))).toEqual([
      '4:3 warning: the key in GEMINI_API_KEY will be sent to api.mistral.ai',
    ])
  })

  test('of bedrock keeps its options, and may name the key that it would use anyway', () => {
    const opts = '{ region: eu-central-1, interleaved_thinking: false, disable_prompt_caching: true }'
    const model = modelOf(
      `provider: amazon-bedrock\nmodel: eu.anthropic.claude-x-v1:0\n${COST}\ntoken_key: AWS_BEARER_TOKEN_BEDROCK\nthinking_budget: adaptive\nprovider_opts: ${opts}`,
    )
    expect(model).toEqual({
      provider: 'amazon-bedrock',
      api: 'amazon_bedrock',
      model: 'eu.anthropic.claude-x-v1:0',
      thinkingBudget: 'adaptive',
      options: { region: 'eu-central-1', interleaved_thinking: false, disable_prompt_caching: true },
      cost: { input: '1', output: '2', cacheRead: '0.1', cacheWrite: '1.25' },
    })
    const own = 'base_url: https://bedrock-runtime.eu-central-1.amazonaws.com'
    expect(problemsOf(withModel(`provider: amazon-bedrock\nmodel: x\n${COST}\n${own}`))).toEqual([])
    const gateway = 'base_url: https://llm.example.com\ntoken_key: MY_KEY'
    expect(problemsOf(withModel(`provider: amazon-bedrock\nmodel: x\n${COST}\n${gateway}`))).toEqual([])
  })

  test('leniently loses the options that are not done here', () => {
    const text = withModel(
      `provider: amazon-bedrock\nmodel: x\n${COST}\nprovider_opts: { profile: me, region: eu-west-1 }`,
    )
    expect(teamOf(text, { lenient: true }).models.m!.options).toEqual({ region: 'eu-west-1' })
    expect(problemsOf(text, { lenient: true })[0]).toContain('it is left out')
  })

  test('of the file goes before them', () => {
    const providers = 'providers: { google: { base_url: "https://llm.example.com/v1" } }'
    const model = `models: { m: { provider: google, model: x, provider_opts: { seed: 1 } } }`
    const { m } = teamOf(`${providers}\nagents: { root: { model: m } }\n${model}`).models
    expect(m).toMatchObject({ api: 'openai_chatcompletions', options: { seed: 1 } })
  })
})

describe('the script of a scripted model', () => {
  test('is checked by what was given for it, and problems point at its lines', () => {
    const text = withModel(`provider: scripted
provider_opts:
  turns:
    - say: hi
    - sya: ho
${COST}`)
    const seen: unknown[] = []
    const found = problemsOf(text, {
      checkScript: (options) => {
        seen.push(options)
        return [
          { path: '/turns/1', message: 'does nothing' },
          { path: '/turns/7/say', message: 'is missing' },
          { path: '', message: 'has no end' },
        ]
      },
    })
    expect(seen).toEqual([{ turns: [{ say: 'hi' }, { sya: 'ho' }] }])
    expect(found).toEqual([
      '7:7 error: "models.m.provider_opts" has no end',
      '8:9 error: "models.m.provider_opts.turns[7].say" is missing',
      '9:11 error: "models.m.provider_opts.turns[1]" does nothing',
    ])
  })
})
