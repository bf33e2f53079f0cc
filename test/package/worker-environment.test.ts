import { createRequire } from 'node:module'
import { expect, test } from 'vitest'

type Make = (source: { resolveVariable: (name: string) => Promise<string> }) => Promise<{ [name: string]: string }>
const make = createRequire(import.meta.url)('../../scripts/worker-environment.cjs') as Make
const environment = (providerKeys: string) => make({ resolveVariable: async () => providerKeys })

test('without keys the worker has none', async () => {
  expect(await environment('')).toEqual({})
})

test('a key is a reference to a secret, which CloudFormation resolves', async () => {
  expect(await environment('OPENAI_API_KEY=subledger/openai, ANTHROPIC_API_KEY=anthropic')).toEqual({
    OPENAI_API_KEY: '{{resolve:secretsmanager:subledger/openai}}',
    ANTHROPIC_API_KEY: '{{resolve:secretsmanager:anthropic}}',
  })
})

test.each([
  ['no secret', 'OPENAI_API_KEY'],
  ['an empty secret', 'OPENAI_API_KEY='],
  ['a name in lower case', 'openai=x'],
  ['credentials of AWS', 'AWS_SECRET_ACCESS_KEY=x'],
  ['a setting of ours', 'SUBLEDGER_TABLE=x'],
  ['a secret that would end the reference', 'OPENAI_API_KEY=x}}y'],
])('%s is refused', async (_what, given) => {
  await expect(environment(given)).rejects.toThrow('an entry is not VARIABLE=secret-name')
})
