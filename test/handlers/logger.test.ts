import { expect, test } from 'vitest'
import { createJsonLogger } from '../../src/logger.ts'

function logger() {
  const lines: string[] = []
  return {
    lines,
    log: createJsonLogger(
      (line) => lines.push(line),
      {},
      () => Date.UTC(2026, 0, 1),
    ),
  }
}

test('a line is one JSON object, with the fields of its logger', () => {
  const { lines, log } = logger()
  log.with({ requestId: 'r1' }).with({ runId: 'x' }).warn('looked', { n: 1 })
  expect(lines).toEqual([
    '{"time":"2026-01-01T00:00:00.000Z","level":"warn","message":"looked","requestId":"r1","runId":"x","n":1}',
  ])
})

test('text that holds line breaks and control characters stays on its line', () => {
  const { lines, log } = logger()
  log.info('a\nb', { said: '\u001b[31mred\r\n', turned: '\u009b31m\u202e\u2028' })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toMatch(/[\p{Cc}\p{Zl}\p{Bidi_Control}]/u)
  expect(JSON.parse(lines[0]!).turned).toBe('\u009b31m\u202e\u2028')
})

test('money and errors are told, not lost', () => {
  const { lines, log } = logger()
  log.error('broke', { cost: 12_345_678_901_234_567_890n, error: new TypeError('no', { cause: new Error('why') }) })
  expect(JSON.parse(lines[0]!)).toMatchObject({
    cost: '12345678901234567890',
    error: { name: 'TypeError', message: 'no', cause: { name: 'Error', message: 'why' } },
  })
})
