/** `subledger usage` and `subledger audit`: clients of the API on the books of one's own machine. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'
import { parseReceipts } from '../../src/cli/receipts-file.ts'
import { rootSessionId } from '../../src/domain/ids.ts'
import { startEmulator } from '../../src/local/emulator.ts'
import { dynamoClient, dynamoTable } from '../../src/store/dynamo-table.ts'
import { responseKey } from '../../src/store/keys.ts'
import { createStore } from '../../src/store/store.ts'
import { A } from '../../src/store/table.ts'
import { type Workplace, workplace } from '../support/product.ts'

const ECHO = `
agents:
  root: { model: echo, instruction: Answer. }
models:
  echo:
    provider: scripted
    model: echo
    cost: { input: 3, output: 15 }
    provider_opts:
      steps: [{ text: 'you said {input}', usage: { input: 1000, output: 200 } }]
`

describe('on the books of one run', () => {
  let place: Workplace
  let runId: string
  beforeAll(async () => {
    place = await workplace({ echo: ECHO })
    const { out } = await cli('run', 'echo', 'hello', '--teams', place.teams, '--json')
    runId = JSON.parse(out).run.runId
  })
  afterAll(() => place.remove())

  async function cli(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
    const [out, err]: [string[], string[]] = [[], []]
    const io: Io = {
      out: (line) => void out.push(line),
      err: (line) => void err.push(line),
      env: {},
      interrupted: new AbortController().signal,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    }
    const code = await main(io, [...argv, '--data', place.data])
    return { code, out: out.join('\n'), err: err.join('\n') }
  }

  /** Works on the table while no command does. */
  async function onTable(
    body: (store: ReturnType<typeof createStore>, table: ReturnType<typeof dynamoTable>) => Promise<unknown>,
  ) {
    const emulator = await startEmulator(place.data)
    const client = dynamoClient({ endpoint: emulator.endpoint })
    const table = dynamoTable(client, 'subledger')
    await body(createStore(table), table)
    client.destroy()
    await emulator.stop()
  }

  test('usage RUN shows its books, as they stand with --json', async () => {
    const { code, out } = await cli('usage', runId)
    expect(code).toBe(0)
    expect(out).toMatch(/^total +1 +1,000 +200 +\$0\.006$/m)
    expect(JSON.parse((await cli('usage', runId, '--json')).out).total.costUsd).toBe('0.006')
  })

  test('usage without RUN is the report over all runs', async () => {
    const day = new Date().toISOString().slice(0, 10)
    const { code, out } = await cli('usage', '--group-by', 'team,agent')
    expect(code).toBe(0)
    expect(out).toMatch(/^team +agent +calls +input +output +cost$/m)
    expect(out).toMatch(/^echo +root +1 +1,000 +200 +\$0\.006$/m)
    expect(out).toMatch(/^total +1 +1,000 +200 +\$0\.006$/m)
    const report = JSON.parse((await cli('usage', '--from', day, '--to', day, '--json')).out)
    expect(report).toMatchObject({ from: day, to: day, total: { costUsd: '0.006' } })
    const csv = await cli('usage', '--group-by', 'model', '--csv')
    expect(csv.out.split('\n')[1]).toMatch(/^scripted\/echo,1,1000,0,0,200,0,0\.006,true,0/)
  })

  test.each([
    [['usage', 'RUN', '--csv'], 'leave RUN out'],
    [['usage', 'RUN', '--from', '2026-01-01'], 'leave RUN out'],
    [['usage', '--csv', '--json'], 'not both'],
    [['usage', '--group-by', 'planet'], '--group-by'],
    [['audit'], 'RUN is missing'],
    [['audit', 'RUN', '--receipts', 'nowhere.csv'], 'cannot be read (ENOENT)'],
  ])('%j is wrong use', async (argv, message) => {
    const { code, err } = await cli(...argv)
    expect([code, err.includes(message)]).toEqual([2, true])
  })

  test('audit says that the books balance', async () => {
    const { code, out } = await cli('audit', runId)
    expect([code, out.split('\n').at(-1)]).toEqual([0, 'balanced'])
    expect(JSON.parse((await cli('audit', runId, '--json')).out)).toMatchObject({ balanced: true, differences: [] })
  })

  test('audit names what differs, with exit code 1, and receipts settle nothing that is known', async () => {
    const ref = { tenant: 'local', runId, sessionId: rootSessionId(runId) }
    let original: object | undefined
    await onTable(async (_, table) => {
      const { item } = await table.get({ key: responseKey(ref, 0), consistent: true })
      original = item
      await table.put({ item: { ...item!, [A.cost]: 6_000_000_001 } })
    })
    const { code, out } = await cli('audit', runId)
    expect(code).toBe(1)
    expect(out).toContain(`call 0 of session ${ref.sessionId} (root): cost is $0.006000000001`)
    expect(out).toMatch(/NOT BALANCED: \d+ differences$/)
    await onTable((_, table) => table.put({ item: original as never }))
    const file = join(place.data, '..', 'receipts.csv')
    await writeFile(file, 'response_id,created_at,input_tokens,output_tokens\nresp_1,2026-01-01T00:00:00Z,10,5\n')
    const settled = await cli('audit', runId, '--receipts', file)
    expect([settled.code, settled.out.split('\n')[0]]).toEqual([0, 'receipts: 0 unknown calls settled, 0 others'])
  })
})

describe('a file of receipts', () => {
  test('may be CSV, with any names of columns and columns of any kind', () => {
    const csv =
      '\ufeff"Response ID",model,cost,input_tokens,Cache-Read-Tokens,outputTokens,"note",created_at\r\n' +
      'r1,gpt-5-mini,0.1,100,40,5,"a ""quoted"", one",1760000001\r\n' +
      '\r\n' +
      'r2,,,7,,3,"two\nlines",2026-01-31T12:00:00+01:00'
    expect(parseReceipts(csv, 'x.csv')).toEqual([
      {
        responseId: 'r1',
        model: 'gpt-5-mini',
        inputTokens: 100,
        cacheReadTokens: 40,
        outputTokens: 5,
        createdAt: '2025-10-09T08:53:21.000Z',
      },
      { responseId: 'r2', inputTokens: 7, outputTokens: 3, createdAt: '2026-01-31T11:00:00.000Z' },
    ])
  })

  test('may be JSON, a list or an object with one', () => {
    const list = [{ session_id: 's', turn: 3, input_tokens: 1, output_tokens: 2, ignored: {} }, { id: 'no tokens' }]
    const read = [{ sessionId: 's', turn: 3, inputTokens: 1, outputTokens: 2 }]
    expect(parseReceipts(JSON.stringify(list), 'x.json')).toEqual(read)
    expect(parseReceipts(JSON.stringify({ receipts: list }), 'x.json')).toEqual(read)
  })

  test.each([
    ['', 'no column inputTokens'],
    ['a,b\n1,2', 'no column inputTokens; its columns are: a, b'],
    ['inputTokens,outputTokens\n', 'holds none'],
    ['inputTokens,outputTokens\n1.5,2', 'receipt 1: inputTokens is "1.5"'],
    ['inputTokens,outputTokens\n1,NaN', 'receipt 1: outputTokens is "NaN"'],
    ['inputTokens,outputTokens,createdAt\n1,2,soon', 'createdAt is "soon"'],
    ['inputTokens,outputTokens\n"1,2', 'a quoted cell has no end'],
    ['inputTokens,outputTokens\n"1"x,2', 'must follow a quoted cell'],
    ['{"receipts": 1}', 'holds no list'],
    ['[1]', 'receipt 1: it is no object'],
    ['[{]', 'not valid JSON'],
  ])('%j is refused', (text, message) => {
    expect(() => parseReceipts(text, 'x')).toThrow(message)
  })
})
