import { describe, expect, test } from 'vitest'
import { definitionHash } from '../../src/domain/ids.ts'
import { MAX_TEAM_BYTES } from '../../src/team/parse-team.ts'
import { formatProblems } from '../../src/team/problems.ts'
import { PRICED, parse, problemsOf, teamOf, withAgent } from './team-text.ts'

describe('a team file', () => {
  test('becomes a definition with nothing left to look up', () => {
    const team = teamOf(
      `version: "7"
metadata: { author: Ada, description: Writes reports, license: MIT, readme: long, version: "1.0" }
agents:
  writer:
    model: fast
    description: writes
    instruction: |
      Write in \${env.LANGUAGE}.
    max_iterations: 7
    welcome_message: hello
    toolsets: [{ type: think }]
  root:
    model: fast
    sub_agents: [writer]
    at_end: wait
    toolsets: [{ type: background_agents }, { type: think }, { type: think }]
${PRICED}`,
      { file: '/teams/report-desk.yaml' },
    )
    expect(team).toEqual({
      shape: 1,
      name: 'report-desk',
      description: 'Writes reports',
      agents: [
        {
          name: 'root',
          model: 'fast',
          description: '',
          instruction: '',
          subAgents: ['writer'],
          toolsets: ['background_agents', 'think'],
          maxIterations: null,
          atEnd: 'wait',
        },
        {
          name: 'writer',
          model: 'fast',
          description: 'writes',
          instruction: `Write in ${'$'}{env.LANGUAGE}.\n`,
          subAgents: [],
          toolsets: ['think'],
          maxIterations: 7,
        },
      ],
      models: {
        fast: {
          provider: 'openai',
          api: 'openai_chatcompletions',
          model: 'gpt-4o-mini',
          tokenKey: 'OPENAI_API_KEY',
          cost: { input: '0.15', output: '0.6', cacheRead: '0.075', cacheWrite: '0.15' },
        },
      },
    })
  })

  test('is plain JSON with the same hash however its lines end and its YAML is written', () => {
    const block = `agents:\n  root:\n    model: fast\n    description: first\n${PRICED}`
    const flow = `{ agents: { "root": { 'description': "first", model: fast } }, ${PRICED.replace(
      'models:',
      'models: {',
    )
      .replace('fast:', 'fast: {')
      .replace('openai\n', 'openai,\n')
      .replace('mini\n', 'mini,\n')} } } }`
    const hash = (text: string) => definitionHash(JSON.stringify(teamOf(text)))
    expect(hash(flow)).toBe(hash(block))
    expect(hash(block.replaceAll('\n', '\r\n'))).toBe(hash(block))
    expect(hash(`\uFEFF${block}`)).toBe(hash(block))
    expect(JSON.parse(JSON.stringify(teamOf(block)))).toEqual(teamOf(block))
    expect(hash(block.replace('0.15', '0.16'))).not.toBe(hash(block))
  })

  test('begins with its first agent where none is named root', () => {
    const team = teamOf(`agents: { second: { model: fast }, first: { model: fast } }\n${PRICED}`)
    expect(team.agents.map((a) => a.name)).toEqual(['second', 'first'])
  })

  test('takes its description from the first agent where the metadata have none', () => {
    expect(teamOf(`agents: { root: { model: fast, description: does it } }\n${PRICED}`).description).toBe('does it')
    expect(teamOf(`agents: { root: { model: fast } }\n${PRICED}`)).not.toHaveProperty('description')
  })

  test('may use anchors, aliases and merge keys; what stands at the agent itself goes first', () => {
    const team = teamOf(`agents:
  root: &base
    model: fast
    description: base
    toolsets: &tools [{ type: think }]
  other:
    description: own
    <<: *base
  third:
    <<: [{ description: first }, *base]
    toolsets: *tools
${PRICED}`)
    expect(team.agents.map((a) => [a.description, a.model, a.toolsets])).toEqual([
      ['base', 'fast', ['think']],
      ['own', 'fast', ['think']],
      ['first', 'fast', ['think']],
    ])
  })

  test('treats a key without a value as one that is not there', () => {
    const text = `agents:\n  root:\n    model: fast\n    description:\n    toolsets:\n    max_iterations:\n${PRICED}`
    expect(problemsOf(text)).toEqual([])
  })
})

describe('a text that is no team file', () => {
  test.each([
    ['nothing', '', '1:1 error: the file is empty; a team needs at least "agents"'],
    ['only a comment', '# later\n', '1:1 error: the file is empty; a team needs at least "agents"'],
    ['a list', '- a\n', '1:1 error: a team file is a mapping that begins with keys such as "agents"'],
    ['a second document', 'agents: {}\n---\nagents: {}\n', '2:1 error: a team file holds one YAML document'],
    ['broken YAML', 'agents:\n  root: [1\n', '3:1 error: YAML: '],
    ['a tab as indentation', 'agents:\n\troot: 1\n', '2:1 error: YAML: Tabs are not allowed as indentation'],
    ['a tag', 'agents: !!js/function x\n', '1:9 error: tags have no meaning here'],
    ['another YAML', '%YAML 1.1\n---\nagents: {}\n', '1:1 error: YAML 1.1 is asked for'],
    ['no agents', 'version: 7\n', '1:1 error: a team needs at least one agent under "agents"'],
    ['agents without any', 'agents: {}\n', '1:1 error: a team needs at least one agent under "agents"'],
    ['agents as a list', 'agents: [root]\n', '1:9 error: "agents" must be a mapping of keys to values'],
    [
      'a key twice',
      `agents: { root: { model: fast, model: fast } }\n${PRICED}`,
      '1:32 error: the key "model" stands here',
    ],
    ['a key that is a list', 'agents:\n  ? [a]\n  : 1\n', '2:5 error: a key must be plain text'],
    [
      'an anchor twice',
      `agents: { a: &x { model: fast }, b: &x { model: fast } }\n${PRICED}`,
      '1:40 error: the anchor "&x"',
    ],
    [
      'an alias of nothing',
      'agents: *nobody\n',
      '1:9 error: "*nobody" refers to an anchor that is not defined before it',
    ],
    ['an alias of itself', 'agents: &a { root: *a }\n', '1:20 error: "*a" contains itself'],
    ['a merge of text', 'agents: { root: { <<: text } }\n', '1:23 error: "<<" takes a mapping'],
    [
      'half a character',
      `agents: { root: { model: fast, description: "\\ud800" } }\n${PRICED}`,
      '1:45 error: the text holds half',
    ],
    [
      'a version from the future',
      'version: 17\nagents: {}\n',
      '1:10 error: "version" must be a whole number from 0 to 16',
    ],
  ])('%s', (_what, text, first) => {
    const found = problemsOf(text)
    expect(found[0]?.startsWith(first), found.join('\n')).toBe(true)
    expect(parse(text).team).toBeUndefined()
  })

  test('larger than its bound is refused before it is parsed', () => {
    const filler = `# ${'x'.repeat(MAX_TEAM_BYTES)}\n`
    expect(problemsOf(`agents: { root: { model: fast } }\n${PRICED}${filler}`)).toEqual([
      '1:1 error: the file is larger than 1,000,000 bytes',
    ])
  })

  test('whose aliases multiply is stopped at a bound', () => {
    const ten = (of: string) => `[${Array(10).fill(of).join(', ')}]`
    const layers = Array.from({ length: 11 }, (_, i) => `a${i + 1}: &a${i + 1} ${ten(`*a${i}`)}`)
    const found = problemsOf(['a0: &a0 lol', ...layers].join('\n'))
    expect(found).toHaveLength(1)
    expect(found[0]).toContain('error: more than 1,000 uses of aliases in one file')
  })

  test('whose aliases repeat something large is stopped at a bound', () => {
    const large = `a: &a [${Array(5000).fill('x').join(', ')}]`
    const found = problemsOf(`${large}\nb: [${Array(100).fill('*a').join(', ')}]`)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain('error: the file holds more than 100,000 values')
  })

  test.each([
    ['a little', 80],
    ['beyond any stack', 20_000],
  ])('that is nested %s too deeply is refused', (_what, depth) => {
    expect(problemsOf(`a: ${'['.repeat(depth)}${']'.repeat(depth)}`)[0]).toContain('nested more than 64 levels deep')
  })

  test('cannot reach a prototype', () => {
    const text = `agents: { root: { model: fast } }
models:
  fast: { provider: scripted, provider_opts: { __proto__: { polluted: true } } }
  __proto__: { provider: openai, model: x }`
    expect(problemsOf(text).filter((p) => p.includes('error'))).toEqual([
      '3:48 error: "__proto__" cannot be a key',
      '4:3 error: "__proto__" cannot be a key',
    ])
    expect({}).not.toHaveProperty('polluted')
    const odd = teamOf(`agents: { constructor: { model: toString } }\n${PRICED.replace('fast', 'toString')}`)
    expect(odd.models.toString).toMatchObject({ provider: 'openai' })
    expect(problemsOf(`agents: { root: { model: toString } }\n${PRICED}`)[0]).toContain('there is no model "toString"')
  })
})

test('problems are formatted one per line, in the order of the text', () => {
  const { problems } = parse(`agents:\n  root: { model: openai/gpt-4o, modl: 1 }\nagnets: {}\n`)
  expect(formatProblems(problems)).toBe(
    [
      'team.yaml:2:18: warning: the model "openai/gpt-4o" has no "cost", and no price of openai/gpt-4o is known: its calls will be booked without a price',
      'team.yaml:2:33: error: "modl" is not a key of agents.root (did you mean "model"?)',
      'team.yaml:3:1: error: "agnets" is not a key of a team file (did you mean "agents"?)',
    ].join('\n'),
  )
  expect(problems.map((p) => p.path)).toEqual(['/agents/root/model', '/agents/root/modl', '/agnets'])
})

test('lines and columns are right in files with Windows line ends', () => {
  expect(problemsOf(withAgent('model: fast\nmax_iterations: x').replaceAll('\n', '\r\n'))[0]).toMatch(/^4:21 error/)
})
