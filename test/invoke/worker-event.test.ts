import { describe, expect, test } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import { parseDeadLetters, parseWorkerEvent, workerPayload } from '../../src/invoke/worker-event.ts'
import { REF } from './fixtures.ts'

test('an event goes out and comes back as it was', () => {
  expect(parseWorkerEvent(JSON.parse(workerPayload(REF)))).toEqual(REF)
})

test('what an event holds beyond its ids is left out', () => {
  expect(parseWorkerEvent({ ...REF, attempt: 7, __proto__: { x: 1 } })).toEqual(REF)
})

test.each([
  ['nothing', undefined, ['/tenant', '/runId', '/sessionId']],
  ['a string', JSON.stringify(REF), ['/tenant', '/runId', '/sessionId']],
  ['no tenant', { ...REF, tenant: undefined }, ['/tenant']],
  ['a tenant that would split the key', { ...REF, tenant: 'a#RUN#b' }, ['/tenant']],
  ['a tenant of 65 characters', { ...REF, tenant: 'x'.repeat(65) }, ['/tenant']],
  ['a run id in lower case', { ...REF, runId: REF.runId.toLowerCase() }, ['/runId']],
  ['a session id of 19 characters', { ...REF, sessionId: REF.sessionId.slice(1) }, ['/sessionId']],
  ['a session id with a line break', { ...REF, sessionId: `${REF.sessionId}\n` }, ['/sessionId']],
  ['a list for an id', { ...REF, runId: [REF.runId] }, ['/runId']],
])('%s is refused, and each wrong part is named', (_what, event, paths) => {
  try {
    parseWorkerEvent(event)
    expect.unreachable()
  } catch (e) {
    if (!SubledgerError.is(e)) throw e
    expect(e.code).toBe('bad_request')
    expect(e.issues.map((i) => i.path)).toEqual(paths)
  }
})

describe('dead letters', () => {
  const letter = (requestPayload: unknown) => ({
    version: '1.0',
    timestamp: '2026-01-01T00:00:00.000Z',
    requestContext: { requestId: 'r', functionArn: 'arn', condition: 'RetriesExhausted', approximateInvokeCount: 3 },
    requestPayload,
    responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
    responsePayload: { errorMessage: 'boom' },
  })
  const message = (messageId: string, body: unknown) => ({ messageId, body, eventSource: 'aws:sqs' })

  test('each message tells whose event it was', () => {
    expect(parseDeadLetters({ Records: [message('m1', JSON.stringify(letter(REF)))] })).toEqual([
      { messageId: 'm1', ref: REF, condition: 'RetriesExhausted' },
    ])
  })

  test.each([
    ['not JSON', '{'],
    ['not an envelope', '"text"'],
    ['null', 'null'],
    ['an envelope of something else', JSON.stringify(letter({ hello: 'world' }))],
  ])('a body that is %s is told apart from the good ones', (_what, body) => {
    const [bad, good] = parseDeadLetters({ Records: [message('m1', body), message('m2', JSON.stringify(letter(REF)))] })
    expect(bad).toEqual({ messageId: 'm1', error: expect.objectContaining({ code: 'bad_request' }) })
    expect(good).toMatchObject({ messageId: 'm2', ref: REF })
  })

  test.each([[undefined], [{}], [{ Records: 'x' }]])('an event without records is refused (%j)', (event) => {
    expect(() => parseDeadLetters(event)).toThrow('there is no list Records')
  })
})
