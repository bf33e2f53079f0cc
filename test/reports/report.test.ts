/** `GET /v1/usage`: what finished rounds have spent, cut in any way, and the same whichever way it is cut. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import { settleUp } from '../../src/engine/settle.ts'
import { createApp } from '../../src/http/app.ts'
import type { SpendFigures, SpendReport } from '../../src/http/views/report.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { type Api, desk, echo, expectProblem, openApi } from '../http/api.ts'
import { rootRef, runRef } from '../support/builders.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { DAY, endedRun, endedRunWithUnknown, worldOn } from './support.ts'

/** One worker's model has no price, one fails once. */
const mixed = scriptedTeam('mixed', [
  {
    agent: agent('root', { subAgents: ['free', 'shaky'] }),
    steps: [
      {
        calls: ['free', 'shaky'].map((name) => ({ tool: 'transfer_task', args: { agent: name, task: 'x' } })),
        usage: { input: 50, output: 5 },
      },
      { text: 'done', usage: { input: 100, output: 10 } },
    ],
  },
  {
    agent: agent('free'),
    steps: [{ text: 'free', usage: { input: 100, output: 10 } }],
    model: { provider: 'house', model: 'own', cost: undefined },
  },
  {
    agent: agent('shaky', { model: 'flaky' }),
    steps: [
      {
        text: 'shaky',
        usage: { input: 100, output: 10 },
        error: { class: 'overloaded', message: 'busy', times: 1, usage: { input: 40, output: 4 } },
      },
    ],
    model: { model: 'flaky' },
  },
])
/** Names that a spreadsheet would take for formulas, and what else breaks a line of CSV. */
const EVIL = '=cmd|"/c calc"!A1,\r\n"x"'

const today = new Date().toISOString().slice(0, 10)

describe('the spend report', () => {
  let api: Api
  let runs: RunView[]
  beforeAll(async () => {
    api = openApi({ teams: [desk, echo, mixed] })
    runs = [
      await api.run({ team: 'desk', input: 'go', tags: { customer: 'acme', stage: 'test' } }),
      await api.run({ team: 'mixed', input: 'go', tags: { customer: EVIL } }),
      await api.run({ team: 'echo', input: 'go' }),
    ]
  })
  afterAll(() => api.close())

  const report = async (query = '') => (await api.get<SpendReport>(`/v1/usage${query && `?${query}`}`)).body
  const sum = (figures: readonly SpendFigures[]) => ({
    calls: figures.reduce((n, f) => n + f.usage.calls, 0),
    inputTokens: figures.reduce((n, f) => n + f.usage.inputTokens, 0),
    outputTokens: figures.reduce((n, f) => n + f.usage.outputTokens, 0),
    costUsd: formatUsd(figures.reduce((n, f) => n + parseUsd(f.costUsd), 0n)),
    unpriced: figures.reduce((n, f) => n + f.unpricedCalls, 0),
  })

  test('comes to what the runs have cost, in all and cut in every way', async () => {
    const { total, rows, from, to } = await report()
    expect([from, to]).toEqual([`${today.slice(0, 8)}01`, today])
    expect(rows).toHaveLength(1)
    const costs = runs.reduce((n, run) => n + parseUsd(run.costUsd), 0n)
    expect(total.costUsd).toBe(formatUsd(costs))
    expect(total).toMatchObject({ costComplete: false, unpricedCalls: 1 })
    expect(total.usage.calls).toBe(runs.reduce((n, run) => n + run.usage.calls, 0))
    for (const by of [
      'team',
      'agent',
      'model',
      'outcome',
      'day',
      'tag:customer',
      'tag:nobody',
      'team,agent,model,day',
    ]) {
      const cut = await report(`groupBy=${encodeURIComponent(by)}`)
      expect(cut.groupBy).toEqual(by.split(','))
      expect(cut.total).toEqual(total)
      expect(sum(cut.rows)).toEqual(sum([total]))
    }
  })

  test('has a line for each group, in order, with what is not known apart', async () => {
    const { rows } = await report('groupBy=team,model')
    expect(rows.map((r) => [r.group.team, r.group.model, r.costComplete])).toEqual([
      ['desk', 'scripted/script', true],
      ['echo', 'scripted/script', true],
      ['mixed', 'house/own', false],
      ['mixed', 'scripted/flaky', true],
      ['mixed', 'scripted/script', true],
    ])
    expect(rows[2]).toMatchObject({ costUsd: '0', unpricedCalls: 1, usage: { calls: 1, inputTokens: 100 } })
    const byOutcome = await report('groupBy=outcome')
    expect(byOutcome.rows.map((r) => r.group.outcome)).toEqual(['accepted', 'failed'])
    const byTag = await report('groupBy=tag:customer')
    expect(byTag.rows.map((r) => r.group['tag:customer'])).toEqual([EVIL, 'acme', null])
  })

  test('a further round adds what it has spent, and no more', async () => {
    const before = (await report('groupBy=team')).rows.find((r) => r.group.team === 'echo')!
    const { runId } = runs[2]!
    await api.post(`/v1/runs/${runId}/input`, { input: 'again' })
    await api.invoker.drain()
    const after = (await report('groupBy=team')).rows.find((r) => r.group.team === 'echo')!
    expect([before.usage.calls, after.usage.calls]).toEqual([1, 2])
    expect(parseUsd(after.costUsd)).toBe(2n * parseUsd(before.costUsd))
  })

  test('is of one tenant', async () => {
    const other = openApi({ app: { tenantOf: () => 'other' } })
    expect((await other.get<SpendReport>('/v1/usage')).body).toMatchObject({ rows: [], total: { costUsd: '0' } })
    await other.close()
    expect(await api.ctx.store.readUsage({ tenant: 'other', day: today })).toEqual([])
  })

  describe('as CSV', () => {
    test('has the same figures, and no cell is a formula', async () => {
      const path = '/v1/usage?groupBy=tag:customer,agent'
      const answer = await api.get<string>(`${path}&format=csv`)
      expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
      expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="usage-[\d-]+\.csv"$/)
      const text = answer.body
      expect(text.split('\r\n')[0]).toBe(
        'tag:customer,agent,calls,inputTokens,cacheReadTokens,cacheWriteTokens,outputTokens,reasoningTokens,costUsd,' +
          'costComplete,unpricedCalls,unknown.calls,unknown.inputTokens,unknown.cacheReadTokens,unknown.cacheWriteTokens,' +
          'unknown.outputTokens,unknown.reasoningTokens,unknown.costUsd,unknown.costComplete',
      )
      expect(text).toContain(`"'${EVIL.replaceAll('"', '""')}",free,1,100,0,0,10,0,0,false,1,0,0,0,0,0,0,0,true\r\n`)
      expect(text).toContain('acme,root,5,6000,400,0,73,0,0.')
      expect((await api.get<string>(path, { accept: 'text/csv' })).body).toBe(text)
      expect((await api.get<SpendReport>(path, { accept: 'text/csv, application/json' })).body.rows).toBeDefined()
    })

    test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1', ' =1', '\u200b=1'])(
      'a name %j gets a quote in front',
      async (customer) => {
        await api.run({ team: 'echo', input: 'go', tags: { customer } })
        const { body } = await api.get<string>('/v1/usage?groupBy=tag:customer&format=csv')
        expect(body).toMatch(/(^|\n)"?'[^\n]*[=+\-@＝]/)
        expect(body).toContain(`'${customer}`)
      },
    )
  })

  test.each([
    ['from=2026-02-30', '?from', 'must be a day'],
    ['to=yesterday', '?to', 'must be a day'],
    ['from=2026-02-02&to=2026-02-01', '?from', 'must not be after'],
    ['from=2025-01-01&to=2026-01-02', '?from', 'at most 366 days'],
    ['groupBy=planet', '?groupBy', 'it takes team, agent'],
    ['groupBy=tag:', '?groupBy', 'it takes team, agent'],
    ['groupBy=team,team', '?groupBy', 'twice'],
    ['groupBy=team,', '?groupBy', 'it takes team, agent'],
    ['groupBy=team,"agent', '?groupBy', 'a double quote'],
    ['groupBy="team"agent', '?groupBy', 'a double quote'],
    [
      `groupBy=team,${Array.from({ length: 11 }, (_, i) => `tag:${i}`)}`,
      '?groupBy',
      'has 11 tags, and takes at most 10',
    ],
    ['format=xml', '?format', 'must be one of'],
    ['until=2026-01-01', '?until', 'is not known here'],
  ])('%s is refused', async (query, path, message) => {
    const problem = expectProblem(await api.get(`/v1/usage?${query}`), 400, 'bad_request')
    expect(problem.errors).toEqual([{ path, message: expect.stringContaining(message) }])
  })

  test.each<[string, string[]]>([
    ['"tag:a,b"', ['tag:a,b']],
    ['team,"tag:a,b",agent', ['team', 'tag:a,b', 'agent']],
    ['"tag:say ""a,b""",tag:"c"', ['tag:say "a,b"', 'tag:"c"']],
  ])('a tag that holds a comma stands in double quotes: %s', async (text, names) => {
    await api.run({ team: 'echo', input: 'go', tags: { 'a,b': 'comma', 'say "a,b"': 'quote', '"c"': 'c' } })
    const { groupBy, rows } = await report(`groupBy=${encodeURIComponent(text)}`)
    expect(groupBy).toEqual(names)
    const tag = names.find((name) => name.includes(','))!
    expect(rows.map((r) => r.group[tag])).toContain(tag === 'tag:a,b' ? 'comma' : 'quote')
  })

  test('one that comes to more bytes than an answer may have is refused, whatever its form', async () => {
    const rows = (await api.ctx.store.readUsage({ tenant: 'local', day: today })).slice(0, 1)
    const names = Array.from({ length: 10 }, (_, i) => `${i}${'"'.repeat(60)}`)
    const lines = Array.from({ length: 4_000 }, (_, i) => ({
      ...rows[0]!,
      tags: Object.fromEntries(names.map((name) => [name, `${i}${'"'.repeat(60)}`])),
    }))
    const full = { ...api.ctx, store: { ...api.ctx.store, readUsage: async () => lines } }
    const app = createApp(full, { tenantOf: () => 'local' })
    const ask = (count: number, format: string) => {
      const by = names.slice(0, count).map((name) => `"tag:${name.replaceAll('"', '""')}"`)
      return app.request(`/v1/usage?from=${today}&groupBy=${encodeURIComponent(by.join(','))}&format=${format}`)
    }
    for (const format of ['json', 'csv']) {
      const answer = await ask(10, format)
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringMatching(/comes to \d+ bytes/)])
    }
    const whole = await ask(1, 'json')
    expect(whole.status).toBe(200)
    // as a string in JSON, which is how Lambda sends it
    expect(JSON.stringify(await whole.text()).length).toBeLessThan(5_000_000)
  })

  test('366 days are read, a leap year as a whole', async () => {
    const { from, to, rows } = await report('from=2024-01-01&to=2024-12-31&groupBy=day')
    expect([from, to, rows]).toEqual(['2024-01-01', '2024-12-31', []])
  })
})

describe('a report over days', () => {
  test('counts each round on the day on which it ended, and calls of unknown outcome apart', async () => {
    const api = openApi()
    const midnight = Date.UTC(2026, 2, 2)
    const ends = { 1: midnight - 1, 2: midnight, 3: midnight + 86_400_000 }
    for (const [n, finishedAt] of Object.entries(ends)) {
      await endedRun(api.ctx.store, runRef(Number(n)), { root: { finishedAt } })
      await settleUp(api.ctx, rootRef(runRef(Number(n))))
    }
    await endedRunWithUnknown(api.ctx.store, runRef(4))
    await settleUp(api.ctx, rootRef(runRef(4)))
    const { body } = await api.get<SpendReport>('/v1/usage?from=2026-03-01&to=2026-03-03&groupBy=day')
    expect(body.rows.map((r) => [r.group.day, r.usage.calls, r.costUsd, r.unknown.calls, r.unknown.costUsd])).toEqual([
      ['2026-03-01', 6, '0.0027', 1, '0.5'],
      ['2026-03-02', 2, '0.0009', 0, '0'],
      ['2026-03-03', 2, '0.0009', 0, '0'],
    ])
    const one = await api.get<SpendReport>('/v1/usage?from=2026-03-02&to=2026-03-02')
    expect(one.body.total).toMatchObject({ usage: { calls: 2 }, costUsd: '0.0009' })
    await api.close()
  })

  test('keeps the money of runs that are gone', async () => {
    const table = memoryTable()
    const world = worldOn(table)
    await endedRunWithUnknown(world.store, runRef())
    await settleUp(world.ctx, rootRef(runRef()))
    const before = await world.store.readUsage({ tenant: 'local', day: DAY })
    const without = memoryTable()
    for (const item of table.items()) if (String(item.pk).includes('#USAGE#')) await without.put({ item })
    const store = createStore(without)
    expect(await store.getRun(runRef())).toBeUndefined()
    expect(before.length).toBeGreaterThan(0)
    expect(await store.readUsage({ tenant: 'local', day: DAY })).toEqual(before)
  })
})
