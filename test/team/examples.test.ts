import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { findAgent, priceOf } from '../../src/domain/team.ts'
import { checkScript, parseScript } from '../../src/model/parse-script.ts'
import { createFolderTeams } from '../../src/team/folder-teams.ts'
import { parseTeam } from '../../src/team/parse-team.ts'
import { formatProblems } from '../../src/team/problems.ts'

const folder = new URL('../../teams/', import.meta.url)
/** those that come with the project; a user's own may stand beside them */
const EXAMPLES = ['anthropic', 'demo', 'failing-worker', 'fan-out', 'openai', 'tasks']
const files = EXAMPLES.map((name) => `${name}.yaml`)

const read = (file: string) => parseTeam(readFileSync(new URL(file, folder), 'utf8'), { file, checkScript })

describe('the example', () => {
  test.each(files)('%s has no problems', (file) => {
    const { team, problems } = read(file)
    expect(formatProblems(problems)).toBe('')
    expect(team?.description).toBeTruthy()
  })

  test.each(files)('%s prices every kind of token of every model', (file) => {
    for (const model of Object.values(read(file).team!.models))
      expect(priceOf(model, { at: 0, inputTokens: 1 })).toMatchObject({
        input: expect.any(BigInt),
        cacheWrite: expect.any(BigInt),
      })
  })

  test.each(files)('%s scripts only calls of tools and agents that its agents have', (file) => {
    const team = read(file).team!
    for (const agent of team.agents) {
      const model = team.models[agent.model]!
      if (model.api !== 'scripted') continue
      const tools = [
        ...(agent.subAgents.length > 0 ? ['transfer_task'] : []),
        ...(agent.toolsets.includes('think') ? ['think'] : []),
        ...(agent.toolsets.includes('background_agents') ? ['run_background_agent', 'wait_background_agents'] : []),
      ]
      const calls = parseScript(model.options)
        .rounds.flat()
        .flatMap((s) => s.calls ?? [])
      for (const call of calls) {
        expect(tools).toContain(call.tool)
        const { agent: name } = call.args as { agent?: string }
        if (name !== undefined) expect(agent.subAgents).toContain(name)
        if (call.tool === 'transfer_task' || call.tool === 'run_background_agent') expect(name).toBeDefined()
      }
    }
  })

  test.each(files)('%s uses every agent and model that it has', (file) => {
    const team = read(file).team!
    const reached = new Set([team.agents[0]!.name])
    for (const name of reached) for (const next of findAgent(team, name)!.subAgents) reached.add(next)
    if (file !== 'tasks.yaml') expect([...reached].toSorted()).toEqual(team.agents.map((a) => a.name).toSorted())
    expect(Object.keys(team.models).toSorted()).toEqual([...new Set(team.agents.map((a) => a.model))].toSorted())
  })
})

test('the folder of examples holds the teams that the documentation names', async () => {
  const quiet = { info: () => {}, warn: () => {}, error: () => {} }
  const teams = await createFolderTeams(folder.pathname, { checkScript, log: quiet }).list()
  expect(teams.map((t) => t.name)).toEqual(expect.arrayContaining(EXAMPLES))
})

test('a mistake in a script is shown with its line', () => {
  const text = readFileSync(new URL('fan-out.yaml', folder), 'utf8').replace('repeat: 8', 'repaet: 8')
  const { problems } = parseTeam(text, { file: 'fan-out.yaml', checkScript })
  const line = text.split('\n').findIndex((l) => l.includes('repaet')) + 1
  expect(formatProblems(problems)).toMatch(
    new RegExp(
      `^fan-out.yaml:${line}:\\d+: error: "models.planner.provider_opts.rounds\\[0\\]\\[0\\].calls\\[0\\].repaet"`,
    ),
  )
})

test('what docs/teams.md shows can be parsed', () => {
  const docs = readFileSync(new URL('../../docs/teams.md', import.meta.url), 'utf8')
  const shown = [...docs.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!)
  expect(shown).toHaveLength(6)
  for (const text of shown) {
    const model = /^models:\n {2}(\w+):/m.exec(text)?.[1]
    const whole = text.includes('agents:') ? text : `agents: { root: { model: ${model} } }\n${text}`
    const { team, problems } = parseTeam(whole, { file: 'docs.yaml', checkScript })
    expect(team, formatProblems(problems)).toBeDefined()
  }
})
