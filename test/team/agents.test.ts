import { describe, expect, test } from 'vitest'
import { MAX_AGENTS } from '../../src/team/parse-team.ts'
import { PRICED, problemsOf, teamOf, withAgent } from './team-text.ts'

describe('an agent that is refused', () => {
  test.each([
    ['has no model', 'description: x', '2:3 error: "agents.root" must say "model"'],
    ['has an empty model', 'model: ""', '2:3 error: "agents.root" must say "model"'],
    ['names a model that is not there', 'model: fats', '3:12 error: there is no model "fats" (did you mean "fast"?)'],
    [
      'names a model nothing is near to',
      'model: mine',
      '3:12 error: there is no model "mine"; define it under "models"',
    ],
    [
      'names two models',
      'model: openai/a,openai/b',
      '3:12 error: "openai/a,openai/b" is not supported by this version',
    ],
    ['names a provider that is not there', 'model: opnai/gpt-4o', '3:12 error: there is no provider "opnai" (did you'],
    [
      'names a provider that is not supported',
      'model: azure/g',
      '3:12 error: "azure" is not supported by this version',
    ],
    ['names a provider without a place', 'model: dmr/x', '3:12 error: "dmr" has no place on Lambda'],
    ['names a scripted model inline', 'model: scripted/x', '3:12 error: a scripted model needs its script'],
    ['names a model with spaces', 'model: openai/a b', '3:12 error: "openai/a b" cannot name a model'],
    [
      'has a list as description',
      'model: fast\ndescription: [a]',
      '4:18 error: "agents.root.description" must be text',
    ],
    [
      'has a mapping as instruction',
      'model: fast\ninstruction: {a: 1}',
      '4:18 error: "agents.root.instruction" must be',
    ],
    ['has text as toolsets', 'model: fast\ntoolsets: think', '4:15 error: "agents.root.toolsets" must be a list'],
    [
      'has a toolset as text',
      'model: fast\ntoolsets: [think]',
      '4:16 error: "agents.root.toolsets[0]" must be a mapping',
    ],
    [
      'has a toolset without type',
      'model: fast\ntoolsets: [{}]',
      '4:16 error: "agents.root.toolsets[0]" must say "type"',
    ],
    [
      'has an unknown toolset',
      'model: fast\ntoolsets: [{type: thnik}]',
      '4:23 error: there is no toolset "thnik" (did',
    ],
    [
      'has a toolset twice mistaken',
      'model: fast\ntoolsets: [{type: think, tpye: x}]',
      '4:30 error: "tpye" is not a key',
    ],
    ['runs programs', 'model: fast\ntoolsets: [{type: shell}]', '4:23 error: "shell" has no place on Lambda'],
    ['reads files', 'model: fast\ntoolsets: [{type: filesystem}]', '4:23 error: "filesystem" has no place on Lambda'],
    [
      'starts an MCP server',
      'model: fast\ntoolsets: [{type: mcp, command: npx}]',
      '4:28 error: "mcp with command" has no place',
    ],
    [
      'calls an MCP server',
      'model: fast\ntoolsets: [{type: mcp, remote: {url: u}}]',
      '4:23 error: "mcp" is not supported by',
    ],
    ['remembers', 'model: fast\ntoolsets: [{type: memory}]', '4:23 error: "memory" is not supported by this version'],
    [
      'has part of a toolset',
      'model: fast\ntoolsets: [{type: think, tools: [think]}]',
      '4:30 error: "tools" is not supported',
    ],
    ['hands off', 'model: fast\nhandoffs: [worker]', '4:5 error: "handoffs" is not supported by this version'],
    ['hooks', 'model: fast\nhooks: {}', '4:5 error: "hooks" has no place on Lambda: hooks run shell commands'],
    [
      'has a slip in a key',
      'model: fast\nsub_agent: [worker]',
      '4:5 error: "sub_agent" is not a key of agents.root (did you',
    ],
    [
      'has a key of models',
      'model: fast\ntemperature: 1',
      '4:5 error: "temperature" is not a key of agents.root (it belongs',
    ],
    [
      'delegates to nobody',
      'model: fast\nsub_agents: [wroker]',
      '4:18 error: there is no agent "wroker" (did you mean "w',
    ],
    [
      'delegates to a list',
      'model: fast\nsub_agents: [[worker]]',
      '4:18 error: "agents.root.sub_agents[0]" must be text',
    ],
    [
      'delegates to null',
      'model: fast\nsub_agents: [null]',
      '4:18 error: "agents.root.sub_agents[0]" must be the name',
    ],
    [
      'delegates outside',
      'model: fast\nsub_agents: [docker/writer]',
      '4:18 error: "docker/writer" is not supported by this',
    ],
    [
      'has nobody to start',
      'model: fast\ntoolsets: [{type: background_agents}]',
      '4:16 error: the toolset "background_age',
    ],
    [
      'has an empty list of agents to start',
      'model: fast\nsub_agents: []\ntoolsets: [{type: background_agents}]',
      '5:16 error: the toolset "background_agents" needs',
    ],
    [
      'ends otherwise',
      'model: fast\nat_end: weit',
      '4:13 error: "agents.root.at_end" must be stop or wait, not "weit" (did you',
    ],
    ['never ends', 'model: fast\nmax_iterations: 0', '4:21 error: "agents.root.max_iterations" is 0, without end'],
    [
      'ends before',
      'model: fast\nmax_iterations: -1',
      '4:21 error: "agents.root.max_iterations" must be a whole number',
    ],
    ['ends in between', 'model: fast\nmax_iterations: 1.5', '4:21 error: "agents.root.max_iterations" must be a whole'],
    ['ends at a word', 'model: fast\nmax_iterations: many', '4:21 error: "agents.root.max_iterations" must be a whole'],
  ])('%s', (_what, agent, expected) => {
    const found = problemsOf(withAgent(agent))
    expect(found, found.join('\n')).toHaveLength(1)
    expect(found[0]?.slice(0, expected.length)).toBe(expected)
  })

  test.each(['my agent', 'ünder', '-x', '', 'a/b', 'x'.repeat(65)])('is named %o', (name) => {
    const found = problemsOf(`agents:\n  ${JSON.stringify(name)}: { model: fast }\n${PRICED}`)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^2:3 error: .* cannot name an agent/)
  })

  test('is the one after the hundredth', () => {
    const agents = (n: number) => Array.from({ length: n }, (_, i) => `  a${i}: { model: fast }`).join('\n')
    expect(problemsOf(`agents:\n${agents(MAX_AGENTS)}\n${PRICED}`)).toEqual([])
    expect(problemsOf(`agents:\n${agents(MAX_AGENTS + 1)}\n${PRICED}`)).toEqual([
      '102:3 error: a team has at most 100 agents; this one has 101',
    ])
  })
})

describe('an agent', () => {
  test('may be its own sub-agent, with a warning', () => {
    const text = withAgent('model: fast\nsub_agents: [root, worker, worker]')
    expect(problemsOf(text)).toEqual([
      '4:18 warning: the agent "root" is its own sub-agent: it may start copies of itself',
      '4:32 warning: the sub-agent "worker" is named twice',
    ])
    expect(teamOf(text).agents[0]?.subAgents).toEqual(['root', 'worker'])
  })

  test('may have text that YAML takes for a number, as it stands in the file', () => {
    expect(teamOf(withAgent('model: fast\ndescription: 1.50\ninstruction: yes')).agents[0]).toMatchObject({
      description: '1.50',
      instruction: 'yes',
    })
  })

  test('may name provider and model, which becomes a model of the team', () => {
    const team = teamOf(withAgent('model: openrouter/mistralai/mistral-small'))
    expect(team.agents[0]?.model).toBe('openrouter/mistralai/mistral-small')
    expect(team.models['openrouter/mistralai/mistral-small']).toEqual({
      provider: 'openrouter',
      model: 'mistralai/mistral-small',
      api: 'openai_compatible',
      baseUrl: 'https://openrouter.ai/api/v1',
      tokenKey: 'OPENROUTER_API_KEY',
    })
  })

  test('that shares an inline model with others gets one warning that it has no price', () => {
    const found = problemsOf('agents:\n  a: { model: openai/gpt-4o }\n  b: { model: openai/gpt-4o }\n')
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^2:15 warning: the model "openai\/gpt-4o" has no "cost"/)
  })
})

describe('leniently', () => {
  test('what is known and not done here is left out with a warning', () => {
    const text = withAgent(
      'model: fast\nhooks: {}\nhandoffs: [x]\nsub_agents: [worker, a/b]\nmax_iterations: 0\ntoolsets: [{type: shell}, {type: think, defer: true}, {type: todo}]',
    )
    const found = problemsOf(text, { lenient: true })
    expect(found.map((p) => p.slice(0, p.indexOf('"', p.indexOf('"') + 1)))).toEqual([
      '4:5 warning: "hooks',
      '5:5 warning: "handoffs',
      '6:26 warning: "a/b',
      '7:21 warning: "agents.root.max_iterations',
      '8:23 warning: "shell',
      '8:45 warning: "defer',
      '8:66 warning: "todo',
    ])
    expect(found.every((p) => p.endsWith('it is left out'))).toBe(true)
    const team = teamOf(text, { lenient: true })
    expect(team.agents[0]).toMatchObject({ subAgents: ['worker'], toolsets: ['think'], maxIterations: null })
  })

  test('a slip stays an error, and so does an agent whose model is left out', () => {
    const text = `agents:
  root: { model: g, modle: x }
models:
  g: { provider: azure, model: gpt }
  unused: { provider: azure, model: gpt }`
    expect(problemsOf(text, { lenient: true }).map((p) => p.slice(0, 40))).toEqual([
      '2:18 error: the model "g" is left out; t',
      '2:21 error: "modle" is not a key of agen',
      '4:18 warning: "azure" is not supported b',
      '5:23 warning: "azure" is not supported b',
    ])
  })
})
