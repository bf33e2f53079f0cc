import { describe, expect, test } from 'vitest'
import type { Run } from '../../../src/domain/run.ts'
import { aRun, books, DRIVER, money, OTHER_DRIVER, runRef, T0 } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench, type RunCase, runCases } from './write-cases.ts'

const NOW = T0 + 5_000
const ended: Partial<Run> = {
  status: 'failed',
  stop: 'cancelled',
  stopReason: 'error',
  error: { code: 'model', message: 'the model said no' },
  cancelRequestedAt: T0 + 1,
  finishedAt: T0 + 2,
  dueAt: null,
}
const finish = {
  round: 1,
  status: 'completed',
  stopReason: 'end_turn',
  error: null,
  books: books(3, 1),
  sessions: 4,
  v: 7,
  reportedAt: NOW - 1,
  now: NOW,
} as const

const CASES: RunCase[] = [
  {
    name: 'W14 cancel a running run',
    from: {},
    write: (store, ref) => store.cancelRun(ref, { now: NOW }),
    becomes: { stop: 'cancelled', cancelRequestedAt: NOW, updatedAt: NOW, dueAt: NOW },
    refused: {
      'it has been stopped already': { stop: 'budget' },
      'it is completed': { status: 'completed' },
      'it is failed': { status: 'failed' },
      'it is cancelled': { status: 'cancelled' },
    },
  },
  {
    name: 'W14 cancel a run that waits for its budget',
    from: { status: 'waiting', stopReason: 'budget', error: { code: 'budget', message: 'too little' } },
    write: (store, ref) => store.cancelRun(ref, { now: NOW }),
    becomes: {
      status: 'cancelled',
      stop: 'cancelled',
      stopReason: 'cancelled',
      error: null,
      cancelRequestedAt: NOW,
      finishedAt: NOW,
      updatedAt: NOW,
    },
    refused: { 'it has been stopped already': { stop: 'cancelled' } },
  },
  {
    name: 'W14 cancel a run that waits for its budget, where runs are not kept for ever',
    from: { status: 'waiting', stopReason: 'budget' },
    write: (store, ref) => store.cancelRun(ref, { now: NOW, expiresAt: 4_000_000_000 }),
    becomes: {
      status: 'cancelled',
      stop: 'cancelled',
      stopReason: 'cancelled',
      cancelRequestedAt: NOW,
      finishedAt: NOW,
      updatedAt: NOW,
      expiresAt: 4_000_000_000,
    },
    refused: { 'it has been stopped already': { stop: 'cancelled' } },
  },
  {
    name: 'W17 finish a run of which all is known',
    from: { error: { code: 'old', message: 'of an earlier round' } },
    write: (store, ref) => store.finishRun(ref, { ...finish, dueAt: null }),
    becomes: {
      status: 'completed',
      stopReason: 'end_turn',
      error: null,
      books: books(3, 1),
      sessions: 4,
      v: 7,
      reportedAt: NOW - 1,
      dueAt: null,
      finishedAt: NOW,
      updatedAt: NOW,
    },
    refused: {
      'another round is open': { round: 2 },
      'it is waiting': { status: 'waiting' },
      'it is completed': { status: 'completed' },
      'it is failed': { status: 'failed' },
      'it is cancelled': { status: 'cancelled' },
    },
  },
  {
    name: 'W17 finish a run with calls of unknown outcome',
    from: { dueAt: null },
    write: (store, ref) =>
      store.finishRun(ref, {
        ...finish,
        status: 'failed',
        stopReason: 'error',
        error: { code: 'model', message: 'the model said no' },
        dueAt: T0 + 900_000,
      }),
    becomes: {
      status: 'failed',
      stopReason: 'error',
      error: { code: 'model', message: 'the model said no' },
      books: books(3, 1),
      sessions: 4,
      v: 7,
      reportedAt: NOW - 1,
      dueAt: T0 + 900_000,
      finishedAt: NOW,
      updatedAt: NOW,
    },
    refused: { 'another round is open': { round: 2 }, 'it has ended': { status: 'cancelled' } },
  },
  {
    name: 'W23 correct a run',
    from: { ...ended, v: 3, books: books(1, 1) },
    write: (store, ref) => store.correctRun(ref, 3, { v: 5, books: books(2), now: NOW }),
    becomes: { v: 5, books: books(2), updatedAt: NOW },
    refused: {
      'it has been corrected since': { v: 4 },
      'it is running, and will take the right totals when it finishes': { status: 'running' },
    },
  },
  {
    name: 'W24 no longer due',
    from: { ...ended, v: 3, dueAt: T0 + 1 },
    write: (store, ref) => store.undueRun(ref, { v: 3, dueAt: T0 + 1 }),
    becomes: { dueAt: null },
    refused: {
      'it has been corrected since': { v: 4 },
      'its time has been moved since': { dueAt: T0 + 2 },
      'it is running again': { status: 'running' },
    },
  },
  {
    name: 'W25 push the due time',
    from: { dueAt: T0 + 1 },
    write: (store, ref) => store.pushDue(ref, { dueAt: T0 + 1, updatedAt: T0 }, T0 + 60_000),
    becomes: { dueAt: T0 + 60_000 },
    refused: {
      'somebody has changed it': { updatedAt: T0 + 1 },
      'another sweep has pushed it': { dueAt: T0 + 2 },
      'it is not due at all': { dueAt: null },
      'it has ended': { status: 'completed' },
    },
  },
  {
    name: 'open a new round',
    from: { ...ended, books: books(3), sessions: 4, v: 7 },
    write: (store, ref) => store.openRound(ref, { seenRound: 1, inputRef: OTHER_DRIVER, dueAt: T0 + 60_000, now: NOW }),
    becomes: {
      status: 'running',
      round: 2,
      inputRef: OTHER_DRIVER,
      inputRound: 2,
      dueAt: T0 + 60_000,
      updatedAt: NOW,
      stop: null,
      stopReason: null,
      error: null,
      finishedAt: null,
      cancelRequestedAt: null,
    },
    refused: {
      'another round has been opened': { round: 2 },
      'it is running': { status: 'running' },
      'it waits for its budget': { status: 'waiting' },
    },
  },
  {
    name: 'open a new round that tries again',
    from: { ...ended, books: books(3), sessions: 4, v: 7 },
    write: (store, ref) =>
      store.openRound(ref, { seenRound: 1, retryRef: OTHER_DRIVER, inputRound: 1, dueAt: T0 + 60_000, now: NOW }),
    becomes: {
      status: 'running',
      round: 2,
      inputRound: 1,
      retry: { round: 2, ref: OTHER_DRIVER },
      dueAt: T0 + 60_000,
      updatedAt: NOW,
      stop: null,
      stopReason: null,
      error: null,
      finishedAt: null,
      cancelRequestedAt: null,
    },
    refused: {
      'another round has been opened': { round: 2 },
      'it is running': { status: 'running' },
      'it waits for its budget': { status: 'waiting' },
    },
  },
]

export function runContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  runCases(at, CASES)

  describe('W1 create a run', () => {
    test('reads back what was written, to the last digit', async () => {
      const run = aRun({
        ...at.newRun(),
        ...ended,
        agent: null,
        tasks: 200,
        limit: { usd: 10n ** 24n, tok: 9_007_199_254_740_993n },
        limitSeq: 3,
        books: {
          ...books(2, 1),
          failed: { ...books(1).accepted!, cost: 123_456_789_012_345_678_901n, unpricedCalls: 2 },
        },
        sessions: 201,
        v: 12,
        tags: { customer: 'Ä, Ö & Ü', status: 'a reserved word', empty: '' },
        dueAt: T0,
        expiresAt: 4_000_000_000,
      })
      expect(await at.store.createRun(run)).toBe('written')
      expect(await at.store.getRun(run)).toEqual(run)
      expect(await at.store.getRun(run, { consistent: false })).toEqual(run)
    })

    test('is done once, by one of 50', async () => {
      const ref = at.newRun()
      const runs = Array.from({ length: 50 }, (_, i) => aRun({ ...ref, team: `team-${i}` }))
      const outcomes = await Promise.all(runs.map((run) => at.store.createRun(run)))
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
      expect(await at.store.getRun(ref)).toEqual(runs[outcomes.indexOf('written')])
    })

    test('a run of another tenant is another run', async () => {
      const ref = at.newRun()
      await at.store.createRun(aRun(ref))
      expect(await at.store.getRun({ ...ref, tenant: 'other' })).toBeUndefined()
      expect(await at.store.createRun(aRun({ ...ref, tenant: 'other' }))).toBe('written')
    })

    test('a run that is not there is a value', async () => {
      expect(await at.store.getRun(at.newRun())).toBeUndefined()
    })
  })

  describe('definition and input', () => {
    const definition = {
      shape: 1,
      name: 'crew',
      agents: [
        {
          name: 'root',
          model: 'm',
          description: '',
          instruction: 'x',
          subAgents: [],
          toolsets: [],
          maxIterations: null,
        },
      ],
      models: {
        m: { provider: 'scripted', api: 'scripted', model: 'm', options: { nested: { list: [1, null, 'ä'] } } },
      },
    } as const
    const hash = 'ab'.repeat(32)

    test('a definition is read back as it was put, also by a second writer of the same', async () => {
      const ref = at.newRun()
      expect(await at.store.getDefinition(ref, hash)).toBeUndefined()
      await Promise.all([1, 2, 3].map(() => at.store.putDefinition(ref, hash, definition)))
      expect(await at.store.getDefinition(ref, hash)).toEqual(definition)
    })

    test('10,000 tasks beyond what an item may hold are read back whole', async () => {
      const ref = at.newRun()
      const tasks = Array.from({ length: 10_000 }, (_, i) => ({
        agent: 'worker',
        task: `${i} ${(i * 2_654_435_761).toString(36).repeat(20)} 🧾`,
      }))
      await at.store.putInput(ref, 1, DRIVER, { tasks })
      expect(await at.store.getInput(ref, 1, DRIVER)).toEqual({ tasks })
      expect(await at.store.getInput(ref, 2, DRIVER)).toBeUndefined()
      expect(await at.store.getInput(ref, 1, OTHER_DRIVER)).toBeUndefined()
    })

    test('a task of a list is found by its place, and with it those of its chunk', async () => {
      const ref = at.newRun()
      const tasks = Array.from({ length: 250 }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))
      await at.store.putInput(ref, 1, DRIVER, { tasks })
      for (const i of [0, 99, 100, 249]) expect(await at.store.getTask(ref, 1, DRIVER, i)).toEqual(tasks[i])
      expect(await at.store.getTask(ref, 1, DRIVER, 250)).toBeUndefined()
      expect(await at.store.getTasks(ref, 1, DRIVER, 100)).toEqual(tasks.slice(100, 200))
      expect(await at.store.getTasks(ref, 1, DRIVER, 200)).toEqual(tasks.slice(200))
      await expect(at.store.getTask(ref, 1, DRIVER, 300)).rejects.toThrow('there are no tasks')
    })

    test('an input keeps its text to the last byte', async () => {
      const ref = at.newRun()
      const input = 'a\u0000b "quoted" \\ 👩‍👩‍👧 \ud83d half of a pair'
      await at.store.putInput(ref, 3, DRIVER, { input })
      expect(await at.store.getInput(ref, 3, DRIVER)).toEqual({ input })
    })
  })

  test('a limit beyond 2^53 is compared and kept exactly', async () => {
    const run = aRun({ ...at.newRun(), limit: { ...money(1), tok: 10n ** 24n - 1n } })
    await at.store.createRun(run)
    expect((await at.store.getRun(run))?.limit.tok).toBe(999_999_999_999_999_999_999_999n)
  })

  describe('cool-downs of a team’s model', () => {
    const until = async (tenant: string, team: string, model: string) => at.store.getCoolDown(tenant, team, model)

    test('are prolonged and never shortened, also by many at once', async () => {
      expect(await until('cool', 'crew', 'mini')).toBeUndefined()
      const times = Array.from({ length: 50 }, (_, i) => T0 + ((i * 7) % 50))
      await Promise.all(times.map((time) => at.store.coolDown('cool', 'crew', 'mini', time)))
      expect(await until('cool', 'crew', 'mini')).toBe(T0 + 49)
      await at.store.coolDown('cool', 'crew', 'mini', T0 + 20)
      expect(await until('cool', 'crew', 'mini')).toBe(T0 + 49)
    })

    test('are of one tenant, team and model', async () => {
      await at.store.coolDown('cool', 'a', 'b', T0)
      expect(await until('cool', 'a', 'other')).toBeUndefined()
      expect(await until('cool', 'other', 'b')).toBeUndefined()
      expect(await until('other', 'a', 'b')).toBeUndefined()
    })
  })

  test.each(['', 'a#b', 'a/b', '-a', 'a'.repeat(65)])(
    'a tenant %j is refused before anything is asked',
    async (tenant) => {
      await expect(async () => at.store.getRun({ ...runRef(), tenant })).rejects.toThrow(RangeError)
    },
  )
}
