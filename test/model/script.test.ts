import { describe, expect, it } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import type { Message } from '../../src/domain/turn.ts'
import { checkScript, parseScript } from '../../src/model/parse-script.ts'
import { play } from '../../src/model/play.ts'

const user = (content: string): Message => ({ role: 'user', content })
const said = (content: string): Message => ({ role: 'assistant', content, toolCalls: [] })
const result = (content: string): Message => ({ role: 'tool', toolCallId: 'c', toolName: 't', content })

/** What is played for a conversation; `n` calls were made before, by default those that are answered in it. */
function answer(
  options: object,
  messages: readonly Message[],
  n = messages.filter((m) => m.role === 'assistant').length,
) {
  const { message, error } = play(parseScript(options), { messages, call: { sessionId: 's', n, driver: 'd' } })
  return error ? `${error.class}: ${error.message}` : message.content
}
const calls = (options: object, messages: readonly Message[]) =>
  play(parseScript(options), { messages, call: { sessionId: 's', n: 0, driver: 'd' } }).message.toolCalls

describe('which step plays', () => {
  it('follows from the number of answers, and the last one plays again', () => {
    const script = { steps: [{ text: 'one' }, { text: 'two' }] }
    expect(answer(script, [user('go')])).toBe('one')
    expect(answer(script, [user('go'), said('one'), result('r')])).toBe('two')
    expect(answer(script, [user('go'), said('one'), result('r'), said('two'), result('r')])).toBe('two')
  })

  it('begins anew with each round', () => {
    const oneList = { steps: [{ text: 'one' }, { text: 'two' }] }
    const rounds = { rounds: [[{ text: 'first' }], [{ text: 'second' }, { text: 'more' }]] }
    const next = [user('go'), said('x'), user('again')]
    expect(answer(oneList, next)).toBe('one')
    expect(answer(rounds, [user('go')])).toBe('first')
    expect(answer(rounds, next)).toBe('second')
    expect(answer(rounds, [...next, said('second'), result('r')])).toBe('more')
    expect(answer(rounds, [...next, said('second'), user('third')])).toBe('second')
    // a round that ended without an answer is a round too
    expect(answer(rounds, [user('go'), user('again')])).toBe('second')
  })

  it('skips steps whose condition does not hold, in the past as now', () => {
    const script = {
      steps: [
        { when: { task: 'hard' }, text: 'this is hard' },
        { text: 'looking' },
        { when: { contains: 'error' }, text: 'it failed' },
        { when: { contains: 'ok' }, text: 'it worked' },
      ],
    }
    expect(answer(script, [user('a hard task')])).toBe('this is hard')
    expect(answer(script, [user('easy')])).toBe('looking')
    expect(answer(script, [user('a hard task'), said('this is hard'), result('x')])).toBe('looking')
    const looked = [user('easy'), said('looking')]
    expect(answer(script, [...looked, result('fine'), result('an error')])).toBe('it failed')
    expect(answer(script, [...looked, result('ok')])).toBe('it worked')
    expect(answer(script, [...looked, result('neither')])).toBe('looking') // the last that fits
  })

  it('is the same whoever plays it: nothing is remembered', () => {
    const script = parseScript({ steps: [{ text: 'one' }, { text: 'two' }] })
    const later = { messages: [user('go'), said('one'), result('r')], call: { sessionId: 's', n: 1, driver: 'd' } }
    const before = play(script, later)
    play(script, { ...later, messages: [user('other')] })
    expect(play(script, later)).toEqual(before)
  })
})

describe('failures', () => {
  const failing = { class: 'overloaded', message: 'busy' }

  it('go on for ever without a number', () => {
    for (const n of [0, 1, 9]) expect(answer({ steps: [{ error: failing }] }, [user('go')], n)).toBe('overloaded: busy')
  })

  it('come a number of times, counted by calls that brought no answer', () => {
    const script = {
      steps: [
        { text: 'one', error: { ...failing, times: 2 } },
        { text: 'two', error: { ...failing, times: 1 } },
      ],
    }
    const first = [user('go')]
    expect([0, 1, 2].map((n) => answer(script, first, n))).toEqual(['overloaded: busy', 'overloaded: busy', 'one'])
    const second = [...first, said('one'), result('r')]
    expect([3, 4].map((n) => answer(script, second, n))).toEqual(['overloaded: busy', 'two'])
  })
})

describe('placeholders', () => {
  const conversation = [
    user('write {i}'),
    said('x'),
    result('started task_a1, task_b2.'),
    said('y'),
    result('first'),
    result('task_a1: done'),
  ]

  it('stand for parts of the conversation', () => {
    const text = (template: string) => answer({ steps: [{ text: template }] }, conversation)
    expect(text('{task}|{input}|{last}')).toBe('write {i}|write {i}|task_a1: done')
    expect(text('{results}')).toBe('first\ntask_a1: done')
    expect(text('{word:task_} {word:task_:2} {word:task_:3}.')).toBe('task_a1 task_b2 .')
    expect(text('{unknown} {"a":1} {}')).toBe('{unknown} {"a":1} {}')
    expect(answer({ steps: [{ text: '{task} {input} {last}' }] }, [user('a'), said('b'), user('c')])).toBe('a c c')
  })

  it('make a fan-out: one call written, many made, with ids of their own', () => {
    const script = {
      steps: [
        {
          calls: [
            { tool: 'run_background_agent', args: { agent: 'worker', task: '{i} of {n}: {task}' }, repeat: 8 },
            { tool: 'wait', args: { ids: '{words:task_}', deep: [{ x: '{i}' }], k: 3 } },
          ],
        },
      ],
    }
    const made = calls(script, conversation)
    expect(made).toHaveLength(9)
    expect(new Set(made.map((c) => c.id)).size).toBe(9)
    expect(made[7]).toEqual({
      id: 'call_2_7',
      name: 'run_background_agent',
      arguments: '{"agent":"worker","task":"8 of 8: write {i}"}',
    })
    expect(JSON.parse(made[8]!.arguments)).toEqual({ ids: ['task_a1', 'task_b2'], deep: [{ x: '1' }], k: 3 })
  })

  it('leave arguments that are text as they are, valid JSON or not', () => {
    expect(calls({ steps: [{ calls: [{ tool: 't', args: '{"a": ' }, { tool: 't' }] }] }, [user('go')])).toMatchObject([
      { arguments: '{"a": ' },
      { arguments: '{}' },
    ])
  })
})

describe('a script that cannot be played', () => {
  it.each<[unknown, string, string]>([
    [undefined, '', 'has no steps'],
    ['text', '', 'is no object'],
    [{ steps: [] }, '/steps', 'is no list with at least one entry'],
    [{ steps: [{ text: 'a' }], rounds: [[{ text: 'a' }]] }, '', 'has steps and rounds'],
    [{ steps: [{}] }, '/steps/0', 'does nothing'],
    [{ rounds: [[{ text: 'a' }], []] }, '/rounds/1', 'is no list'],
    [{ steps: [{ txt: 'a' }] }, '/steps/0/txt', 'is not known here; known are when, text'],
    [{ steps: [{ text: 5 }] }, '/steps/0/text', 'is no text'],
    [{ steps: [{ calls: [{ args: {} }] }] }, '/steps/0/calls/0/tool', 'names no tool'],
    [{ steps: [{ calls: [{ tool: 't', args: 7 }] }] }, '/steps/0/calls/0/args', 'is neither an object nor text'],
    [{ steps: [{ calls: [{ tool: 't', repeat: 0 }] }] }, '/steps/0/calls/0/repeat', 'from 1 to 1000'],
    [{ steps: [{ text: 'a', delayMs: -1 }] }, '/steps/0/delayMs', 'is no whole number'],
    [{ steps: [{ text: 'a', usage: { input: 1.5 } }] }, '/steps/0/usage/input', 'is no whole number'],
    [{ steps: [{ text: 'a', usage: { output: 1e9 + 1 } }] }, '/steps/0/usage/output', 'from 0 to 1000000000'],
    [{ steps: [{ error: { class: 'server', afterTokens: 2 ** 53 - 1 } }] }, '/steps/0/error/afterTokens', 'from 0 to'],
    [{ steps: [{ text: 'a', usage: { input: 5, cacheRead: 6 } }] }, '/steps/0/usage', 'more cached input than input'],
    [{ steps: [{ text: 'a', usage: { output: 5, reasoning: 6 } }] }, '/steps/0/usage', 'more reasoning than output'],
    [{ steps: [{ error: { class: 'bad luck' } }] }, '/steps/0/error/class', 'is not one of rate_limit'],
    [{ steps: [{ error: {} }] }, '/steps/0/error/class', 'is missing'],
    [{ steps: [{ error: { class: 'auth', times: 1 } }] }, '/steps/0', 'then has no answer'],
    [{ steps: [{ text: 'a', error: { class: 'auth' } }] }, '/steps/0', 'give error.times'],
  ])('%j is refused at %s', (options, path, message) => {
    const issues = checkScript(options)
    expect(issues.find((i) => i.path === path)?.message).toContain(message)
    expect(() => parseScript(options)).toThrow(SubledgerError)
  })

  it('names a place once, as messages about team files do', () => {
    const script = { steps: [{ calls: [{ args: {} }] }] }
    expect(() => parseScript(script)).toThrow('The script is not valid: "steps[0].calls[0].tool" names no tool')
    expect(checkScript(script).map((i) => i.message)).toEqual(['names no tool'])
  })

  it('is refused as a bad team, with every place that is wrong', () => {
    try {
      parseScript({ steps: [{ text: 1 }, { txt: 'a' }] })
      expect.unreachable()
    } catch (e) {
      expect(e).toMatchObject({ code: 'bad_team', message: expect.stringContaining('and 3 more') })
      expect((e as SubledgerError).issues.map((i) => i.path)).toContain('/steps/1/txt')
    }
  })
})
