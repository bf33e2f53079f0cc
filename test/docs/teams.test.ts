/** Every team in the documentation can be run as it stands. */

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { siftOptions } from '../../src/domain/provider-options.ts'
import type { ModelApi } from '../../src/domain/team.ts'
import { checkScript } from '../../src/model/parse-script.ts'
import { parseTeam } from '../../src/team/parse-team.ts'
import { formatProblems } from '../../src/team/problems.ts'
import { parseLimits } from '../../src/team/read-limits.ts'
import { blocks, PAGES } from './pages.ts'

const all = PAGES.flatMap((p) =>
  blocks(p)
    .filter((b) => b.language === 'yaml')
    .map((b) => ({ place: `${p.path}:${b.line}`, text: b.text })),
)
const isLimits = (text: string): boolean => /^limits:/m.test(text)
const yaml = all.filter((b) => !isLimits(b.text))
/** A piece of a team file is tried with an agent for each of its models. */
const whole = (text: string): string => {
  if (/^agents:/m.test(text)) return text
  const models = [...(text.split(/^models:$/m)[1] ?? '').matchAll(/^ {2}(\w+):$/gm)].map((m) => m[1]!)
  const agents = models.map((m, i) => `  ${i === 0 ? 'root' : m}: { model: ${m}, instruction: Work. }`)
  return `agents:\n${agents.join('\n')}\n${text}`
}

describe('a team in the documentation', () => {
  test.each(yaml)('$place has no errors', ({ place, text }) => {
    const { team, problems } = parseTeam(whole(text), { file: place, checkScript })
    expect(formatProblems(problems.filter((p) => p.severity === 'error'))).toBe('')
    expect(team?.agents.length).toBeGreaterThan(0)
  })

  test.each(all.filter((b) => isLimits(b.text)))('the limits at $place have no errors', ({ place, text }) => {
    expect(formatProblems(parseLimits(text, { file: place }).problems)).toBe('')
  })

  test('is in the README and in the page on team files', () => {
    expect(yaml.some((b) => b.place.startsWith('README.md'))).toBe(true)
    expect(yaml.some((b) => b.place.startsWith('docs/teams.md'))).toBe(true)
  })

  test('control: one with an agent that is not there is found', () => {
    const bad = 'agents:\n  root: { model: openai/gpt-4o, instruction: Lead., sub_agents: [nobody] }'
    expect(parseTeam(bad, { file: 'bad.yaml' }).team).toBeUndefined()
  })
})

describe('options of a provider', () => {
  const page = readFileSync(new URL('../../docs/teams.md', import.meta.url), 'utf8')
  const section = page.split('### Options of the provider\n')[1]!.split('\n#')[0]!
  /** they say how a call is made, and have their own places on the page */
  const settings = ['stream', 'region', 'model_family', 'interleaved_thinking', 'disable_prompt_caching']
  const sent = (api: ModelApi) =>
    siftOptions({ api, options: { nobody_knows_it: 1 } }).notSent[0]!.known.filter((key) => !settings.includes(key))

  test.each<[string, ModelApi]>([
    ['OpenAI, chat completions', 'openai_chatcompletions'],
    ['OpenAI, responses', 'openai_responses'],
    ['Anthropic', 'anthropic'],
    ['Google', 'google'],
    ['Amazon Bedrock', 'amazon_bedrock'],
    ['Other OpenAI-compatible endpoints', 'openai_compatible'],
  ])('that are sent are on the page: %s', (name, api) => {
    const item = section.split(`- **${name}**: `)[1]!.split('\n- ')[0]!.split('\n\n')[0]!
    const keys = [...item.replace(/\([^)]*\)/g, '').matchAll(/`(\w+)`/g)].map((m) => m[1]!)
    expect(keys.sort()).toEqual(sent(api).sort())
  })

  test("of models on Bedrock alone, and the settings that are not the provider's, are on the page", () => {
    const item = section.split('- Of `additional_model_request_fields` these are sent: ')[1]!.split('\n- ')[0]!
    const keys = [...item.replace(/\([^)]*\)/g, '').matchAll(/`(\w+)`/g)].map((m) => m[1]!)
    const options = { additional_model_request_fields: { nobody_knows_it: 1 } }
    const { known } = siftOptions({ api: 'amazon_bedrock', options }).notSent[0]!
    expect(keys.sort()).toEqual([...known].sort())
    for (const setting of settings) expect(page).toContain(setting)
  })
})
