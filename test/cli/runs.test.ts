/** Commands as clients of the API: in this process, and over HTTP. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compare } from '../../src/cli/commands/demo.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import { type Local, startLocal } from '../../src/local.ts'
import { type Said, say } from './terminal.ts'

const model = (name: string, step: string) =>
  `  ${name}:\n    provider: scripted\n    model: ${name}\n    cost: { input: 1, output: 2 }\n    provider_opts: { steps: [${step}] }\n`
const worker = '  worker: { model: worker, instruction: Work., description: works }\n'
/** Its answer would clear the screen, set the title and turn the text round, if it were let. */
const ANSWER = String.raw`"\e[2J\e]0;owned\a{input} \u202Etxet\r\nnext line"`
const TEAMS = {
  lead: `agents:\n  root:\n    model: root\n    instruction: Lead.\n    sub_agents: [worker]\n${worker}models:\n${model('root', `{ calls: [{ tool: transfer_task, args: { agent: worker, task: part one } }], usage: { input: 1000, output: 20 } }, { text: ${ANSWER}, usage: { input: 30, output: 5 } }`)}${model('worker', '{ text: worker done, usage: { input: 100, output: 50 } }')}`,
  failing: `agents:\n  root: { model: root, instruction: Fail. }\nmodels:\n${model('root', '{ error: { class: invalid_request, message: no such model, usage: { input: 7, output: 0 } } }')}`,
  slow: `agents:\n  root: { model: root, instruction: Wait. }\nmodels:\n${model('root', '{ text: late, delayMs: 600000 }')}`,
  keyless: 'agents:\n  worker: { model: openai/gpt-4o-mini, instruction: x }\n',
  broken: 'agents:\n  root:\n    model: nobody\n',
}

let folder: string
let local: Local
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  for (const [name, text] of Object.entries(TEAMS)) await writeFile(join(folder, `${name}.yaml`), text)
  await writeFile(
    join(folder, 'tasks.json'),
    JSON.stringify([1, 2, 3].map((n) => ({ agent: 'worker', task: `part ${n}` }))),
  )
  await writeFile(join(folder, 'wrong-tasks.json'), JSON.stringify([{ agent: 'worker' }]))
  local = await startLocal({ port: 0, teamsDir: folder, dataDir: null, sweepSeconds: 0.1, env: {} })
})
afterAll(async () => {
  await local.stop()
  await rm(folder, { recursive: true })
})

/** Both ways to the same API: a running one, and one in this process with books of its own. */
const WAYS: readonly [way: string, options: () => string[]][] = [
  ['over HTTP', () => ['--url', local.url]],
  ['embedded', () => ['--teams', folder, '--data', join(folder, 'data')]],
]

describe.each(WAYS)('%s', (_, options) => {
  const sub = (...argv: string[]) => say([...argv, ...options()])
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await sub(...argv, '--json')).out) as T

  test('a run is waited for, shown as a tree, and can be looked at in every way afterwards', async () => {
    const ran = await sub('run', 'lead', 'go', '--watch')
    expect(ran.code).toBe(0)
    const runId = /run (\w{26})/.exec(ran.out)![1]!
    expect(ran.err).toContain(`run ${runId} has started`)
    expect(ran.err).toMatch(/^completed: 2 completed; 1,130 tokens in, 75 out, \$0\.00128$/m)
    expect(ran.err).toMatch(
      /worker \w{6} +created: part one\n(.*\n)*.*worker \w{6} +completed\n(.*\n)*.* root +completed$/m,
    )
    const tree = ran.out.split('\n')
    expect(tree.find((l) => l.startsWith('root'))).toMatch(/root +completed +2 +1,030 +25 +\$0\.00108$/)
    expect(tree.find((l) => l.startsWith('└─ worker'))).toMatch(/transfer +completed +1 +100 +50 +\$0\.0002$/)
    expect(tree.find((l) => l.startsWith('2 sessions'))).toMatch(/completed +3 +1,130 +75 +\$0\.00128$/)

    const { run, sessions } = await json<{ run: RunView; sessions: SessionView[] }>('get', runId)
    expect(run).toMatchObject({ runId, status: 'completed', costUsd: '0.00128' })
    const id = sessions.find((s) => s.agent === 'worker')!.sessionId
    expect((await sub('get', runId)).out).toBe(ran.out)
    const ids = (await sub('sessions', runId)).out.split('\n')
    expect(ids.find((l) => l.includes(run.rootSessionId))).toMatch(/^root +\w{20}/)
    expect(ids.find((l) => l.includes(id))).toMatch(/^└─ worker +\w{20} +part one$/)
    expect((await sub('messages', runId, id)).out).toBe(
      '[0] system\n    Work.\n[0] user\n    part one\n[0] assistant\n    worker done',
    )
    expect((await sub('messages', runId, run.rootSessionId)).out).toContain('→ transfer_task {"agent":"worker"')
    expect((await sub('calls', runId)).out.split('\n')).toHaveLength(4)
    expect((await sub('usage', runId)).out).toMatch(/^ {2}worker +1 +100 +50 +\$0\.0002$/m)
    expect((await sub('list')).out).toMatch(new RegExp(`^${runId}  lead +completed`, 'm'))
    expect((await sub('teams')).out).toMatch(/^lead/m)

    const further = await sub('input', runId, 'more')
    expect(further.code).toBe(0)
    expect(further.out).toMatch(/round 2 {2}completed/)
    expect((await sub('cancel', runId)).out).toBe(`run ${runId} had ended already: completed`)
    expect(await sub('delete', runId)).toMatchObject({ code: 0, out: `run ${runId} is deleted` })
    expect((await sub('get', runId)).code).toBe(2)
    const gone = `There is no run "${runId}". "subledger list" lists them.`
    expect(await sub('delete', runId)).toMatchObject({ code: 2, err: gone })
    expect(await sub('get', runId)).toMatchObject({ code: 2, err: gone })
  })

  test('a list of tasks has a session for each and no model that leads them', async () => {
    const { code, out } = await sub('run', 'lead', '--tasks', join(folder, 'tasks.json'))
    expect(code).toBe(0)
    expect(out.match(/─ worker +task +completed/g)).toHaveLength(3)
    expect(out).toMatch(/^\(list of tasks\) +root +completed +0 +0 +0 +-$/m)
    for (const n of [1, 2, 3]) expect(out).toContain(`\nworker: part ${n}\n    worker done`)
    const runId = /run (\w{26})/.exec(out)![1]!
    expect((await sub('get', runId)).out).toBe(out)
  })

  test('what a model says cannot take hold of the terminal', async () => {
    const { out } = await sub('run', 'lead', 'go')
    expect(out).toContain('[2J]0;ownedgo txet\nnext line')
    expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
  })

  test('a file of tasks may have a byte order mark, and is UTF-8', async () => {
    const file = join(folder, 'marked.json')
    const text = Buffer.from(JSON.stringify([{ agent: 'worker', task: 'grün' }]))
    await writeFile(file, Buffer.concat([Buffer.from('\ufeff'), text]))
    expect(await sub('run', 'lead', '--tasks', file)).toMatchObject({ code: 0 })
    await writeFile(file, Buffer.from(text.toString(), 'latin1'))
    const { code, err } = await sub('run', 'lead', '--tasks', file)
    expect([code, err.split('\n')[0]]).toEqual([2, `The file of tasks ${file} is not UTF-8 text: see byte 29.`])
  })

  test('a run that fails is exit code 1, with what it cost', async () => {
    const { code, out } = await sub('run', 'failing', 'go')
    expect(code).toBe(1)
    expect(out).toContain('of it waste: 1 call, $0.000007')
    expect(out).toMatch(/error: invalid_request: .*no such model/)
  })

  test('what happens in a run is printed, as lines or as JSON, and of one session its turns too', async () => {
    const runId = /run (\w{26})/.exec((await sub('run', 'lead', 'go')).out)![1]!
    const lines = await sub('watch', runId)
    expect(lines.code).toBe(0)
    expect(
      lines.out.split('\n').map((l) =>
        l
          .slice(10)
          .replace(/ +/g, ' ')
          .replace(/ \w{6} /, ' ID '),
      ),
    ).toEqual([
      'root created',
      'root started',
      'worker ID created: part one',
      'worker ID started',
      'worker ID completed',
      'root completed',
    ])
    const { run } = await json<{ run: RunView }>('get', runId)
    const events = (await sub('watch', runId, '--session', run.rootSessionId, '--json')).out.split('\n')
    const types = events.map((e) => JSON.parse(e).type)
    expect(types.filter((type) => type === 'turn.finished')).toHaveLength(2)
    expect(types.filter((type) => type === 'tool.result')).toHaveLength(1)
    expect(await sub('watch', '01K74V2QHG0000000000000000')).toMatchObject({ code: 2, out: '' })
  })

  test('what was not completed is tried again, and only that', async () => {
    const failed = /run (\w{26})/.exec((await sub('run', 'failing', 'go')).out)![1]!
    const again = await sub('retry', failed, '--watch')
    expect(again).toMatchObject({ code: 1, out: expect.stringContaining('round 2') })
    expect(again.err).toContain('goes on in round 2')
    const refused = await sub('retry', failed, '--session', 'x', '--session', 'y')
    expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/^--session: .*leave --session out\.$/) })
    const done = /run (\w{26})/.exec((await sub('run', 'lead', 'go')).out)![1]!
    expect(await sub('retry', done)).toMatchObject({ code: 2, err: expect.stringContaining('nothing to retry') })
  })

  test.each<[what: string, argv: string[], text: RegExp]>([
    ['an unknown team', ['run', 'nobody', 'go'], /^There is no team "nobody"; there are: .*\.$/],
    ['an empty input', ['run', 'lead', ' '], /^The input must not be empty\.$/],
    ['an empty further input', ['input', '01K74V2QHG0000000000000000', ''], /^The input must not be empty\.$/],
    ['a budget that is no amount', ['budget', '01K74V2QHG0000000000000000', 'much'], /^USD must be an amount in USD /],
    ['an unknown status', ['list', '--status', 'over'], /^--status must be one of running, .*cancelled\.$/],
    ['a tag that is none', ['run', 'lead', 'go', '--tag', 'acme'], /^--tag is "acme": it must be NAME=VALUE/],
    ['a tag given twice', ['run', 'lead', 'go', '--tag', 'a=1', '--tag', 'a=2'], /^--tag a is given twice\./],
    [
      'a tag that is too long',
      ['run', 'lead', 'go', '--tag', `a=${'x'.repeat(5000)}`],
      /^--tag has a tag of more than/,
    ],

    ['an unknown agent', ['run', 'lead', 'go', '--agent', 'nobody'], /no agent "nobody"/],
    ['a team file with an error', ['run', 'broken', 'go'], /broken\.yaml:3:\d+/],
    [
      'an unknown run',
      ['get', '01K74V2QHG0000000000000000'],
      /no run "01K74V2QHG0000000000000000"\. "subledger list" lists them\.$/,
    ],
    ['an id that is none', ['cancel', '../x'], /no run "\.\.\/x"/],
  ])('%s is exit code 2', async (_what, argv, text) => {
    const { code, err, out } = await sub(...argv)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(text)
    expect(err).not.toMatch(/ {4}at /)
  })

  test('a session that is not there is told in words of commands', async () => {
    const { out } = await sub('run', 'lead', 'go')
    const said = await sub('messages', /run (\w{26})/.exec(out)![1]!, '0123456789abcdefghjk')
    expect(said.err).toMatch(
      /There is no session "0123456789abcdefghjk" in run \w{26}\. "subledger sessions RUN" lists them\.$/,
    )
  })

  test('tasks that fail for the same reason are told once', async () => {
    const { code, out, err } = await sub('run', 'keyless', '--tasks', join(folder, 'tasks.json'))
    expect(code).toBe(0)
    expect(out).toContain('3 tasks failed: auth: OPENAI_API_KEY is not set')
    expect(`${out}${err}`.match(/OPENAI_API_KEY/g)).toHaveLength(1)
  })

  test('a key that is missing is told once', async () => {
    const { code, out, err } = await sub('run', 'keyless', 'go')
    expect(code).toBe(1)
    expect(`${out}${err}`.match(/OPENAI_API_KEY/g)).toHaveLength(1)
  })

  test('runs have tags, and are listed by their status and their team', async () => {
    const { run } = await json<{ run: RunView }>('run', 'lead', 'go', '--tag', 'customer=acme', '--tag', 'note=a=b')
    expect(run.tags).toEqual({ customer: 'acme', note: 'a=b' })
    await sub('run', 'failing', 'go')
    const { runs: listed } = await json<{ runs: RunView[] }>('list', '--status', 'completed', '--team', 'lead')
    expect(listed.map((r) => r.runId)).toContain(run.runId)
    expect(listed.every((r) => r.status === 'completed' && r.team === 'lead')).toBe(true)
    expect((await sub('list', '--status', 'failed')).out).not.toContain(run.runId)
  })

  test('a file of tasks that is no JSON is told with line and column', async () => {
    await writeFile(join(folder, 'no.json'), '[\n  x\n]')
    const { code, err } = await sub('run', 'lead', '--tasks', join(folder, 'no.json'))
    expect(code).toBe(2)
    expect(err).toContain(
      `The file of tasks ${join(folder, 'no.json')} is not valid JSON: a value is expected at line 2`,
    )
    expect(err.match(/not valid JSON/g)).toHaveLength(1)
  })

  test('tasks that are wrong are told by their place', async () => {
    const both = await sub('run', 'lead', '--agent', 'worker', '--tasks', join(folder, 'tasks.json'))
    expect(both).toMatchObject({ code: 2, err: 'There are both --agent and --tasks: each task names its own agent.' })
    const { code, err } = await sub('run', 'lead', '--tasks', join(folder, 'wrong-tasks.json'))
    expect({ code, err }).toEqual({ code: 2, err: `${join(folder, 'wrong-tasks.json')}: tasks[0].task is missing.` })
  })
})

test('whoever interrupts is detached from a run that goes on, and can end it later', async () => {
  const said: Said = await say(['run', 'slow', 'go', '--url', local.url, '--watch'], { interruptAt: /turn|started/ })
  expect(said.code).toBe(130)
  const runId = /Detached\. Run (\w{26}) goes on/.exec(said.err)![1]!
  expect((await say(['get', runId, '--url', local.url])).out).toContain('running')
  expect(await say(['cancel', runId, '--url', local.url])).toMatchObject({ code: 0, out: `run ${runId}: cancelled` })
})

test('whoever interrupts an embedded run finds it in the books', async () => {
  const options = ['--teams', folder, '--data', join(folder, 'interrupted')]
  const said = await say(['run', 'slow', 'go', ...options, '--watch'], { interruptAt: /turn|started/ })
  expect(said.code).toBe(130)
  const runId = /Interrupted\. Run (\w{26}) is kept/.exec(said.err)![1]!
  expect((await say(['list', ...options])).out).toContain(`${runId}  slow`)
})

test('a team can be named by its file, where the API is in this process', async () => {
  const { code, out } = await say(['run', join(folder, 'lead.yaml'), 'go', '--data', join(folder, 'by-file')])
  expect(code).toBe(0)
  expect(out).toContain('team lead')
})

test('a token is sent along, and not told when it is refused', async () => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.writeHead(401, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify({ status: 401, code: 'unauthorized', detail: 'Sign in first.' }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const said = await say(['list'], { env: { SUBLEDGER_URL: url, SUBLEDGER_TOKEN: 'sesame' } })
  server.close()
  expect({ seen, said }).toEqual({ seen: ['Bearer sesame'], said: { code: 2, out: '', err: 'Sign in first.' } })
})

test('the demo shows a root and at least three workers, and its books are those of the model', async () => {
  const { code, out } = await say(['demo'])
  expect(code).toBe(0)
  expect(
    out.match(/^[├└│ ]+─ \w+ +(background|transfer) +completed +\d+ +[\d,]+ +\d+ +\$0\.\d+$/gm)!.length,
  ).toBeGreaterThanOrEqual(3)
  expect(out).toMatch(/the model's own bill +11 calls +14,260 tokens in +706 out +\$0\.0271272/)
  expect(out).toContain('The books balance.')
})

test('control: the demo does not call books balanced that miss a token or a millionth of a cent', () => {
  const figures = { calls: 1, inputTokens: 100, outputTokens: 50, cost: 1_000_000_000n }
  const usage = {
    calls: 1,
    inputTokens: 100,
    outputTokens: 50,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  }
  const lines: string[] = []
  const balanced = (costUsd: string, outputTokens: number) =>
    compare({ out: (line) => lines.push(line) }, figures, {
      books: [{ usage: { ...usage, outputTokens }, costUsd, costComplete: true }],
    })
  expect(balanced('0.001', 50)).toBe(true)
  expect(balanced('0.001', 49)).toBe(false)
  expect(balanced('0.00100001', 50)).toBe(false)
  expect(lines.at(-1)).toBe('THE BOOKS DO NOT BALANCE.')
})

test('dev serves until it is interrupted', async () => {
  const options = ['--teams', folder, '--data', join(folder, 'dev'), '--port', '0']
  const { code, out } = await say(['dev', ...options], { interruptAt: /books/ })
  expect(code).toBe(0)
  expect(out).toMatch(/Subledger listens on http:\/\/127\.0\.0\.1:\d+ /)
  expect(out).toContain('no console in this version')
})
