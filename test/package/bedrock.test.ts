/** What the worker may call on Amazon Bedrock follows from the team files. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'

const bedrockPolicy: (() => Promise<unknown>) & { policyFor(models: readonly string[]): unknown } = createRequire(
  import.meta.url,
)('../../scripts/bedrock-policy.cjs')

const ACTION = 'bedrock:InvokeModelWithResponseStream'
const allow = (resource: unknown, more = {}) => ({ Effect: 'Allow', Action: ACTION, Resource: resource, ...more })
const here = (resource: string) => ({ 'Fn::Sub': `arn:\${AWS::Partition}:bedrock:${resource}` })
const policy = (...Statement: unknown[]) => ({
  PolicyName: 'bedrock',
  PolicyDocument: { Version: '2012-10-17', Statement },
})

const { SUBLEDGER_TEAMS } = process.env
let dir: string | undefined
afterEach(async () => {
  if (SUBLEDGER_TEAMS === undefined) delete process.env.SUBLEDGER_TEAMS
  else process.env.SUBLEDGER_TEAMS = SUBLEDGER_TEAMS
  if (dir) await rm(dir, { recursive: true })
  dir = undefined
})

test('it is allowed the models that teams name, each once, and none of other providers', async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'bedrock-'))
  process.env.SUBLEDGER_TEAMS = dir
  const model = (provider: string, id: string) =>
    `agents: { root: { model: m } }\nmodels: { m: { provider: ${provider}, model: "${id}", max_tokens: 100 } }\n`
  await writeFile(path.join(dir, 'a.yaml'), model('amazon-bedrock', 'amazon.nova-lite-v1:0'))
  await writeFile(path.join(dir, 'b.yaml'), model('amazon-bedrock', 'amazon.nova-lite-v1:0'))
  await writeFile(path.join(dir, 'c.yaml'), model('openai', 'gpt-5-mini'))
  expect(await bedrockPolicy()).toEqual(policy(allow(here('*::foundation-model/amazon.nova-lite-v1:0'))))
})

test('without such a model it is allowed nothing', () => {
  expect(bedrockPolicy.policyFor([])).toEqual({ Ref: 'AWS::NoValue' })
})

test('an inference profile of a geography is allowed with the model behind it', () => {
  expect(bedrockPolicy.policyFor(['eu.anthropic.claude-sonnet-4-5-20250929-v1:0'])).toEqual(
    policy(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: these are CloudFormation's
      allow(here('*:${AWS::AccountId}:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0')),
      allow(here('*::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0')),
    ),
  )
})

test('models behind a profile of one’s own are allowed through it only', () => {
  const arn = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc'
  expect(bedrockPolicy.policyFor([arn])).toEqual(
    policy(
      allow(arn),
      allow(here('*::foundation-model/*'), { Condition: { StringEquals: { 'bedrock:InferenceProfileArn': arn } } }),
    ),
  )
})
