/** Every team in the documentation can be run as it stands. */
import { describe, expect, test } from 'vitest'
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
