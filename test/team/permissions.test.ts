import { describe, expect, test } from 'vitest'
import { matches, parsePattern, permissionOf } from '../../src/domain/permissions.ts'
import { problemsOf, teamOf, withAgent } from './team-text.ts'

const delegating = withAgent('model: fast\nsub_agents: [worker]\ntoolsets: [{ type: background_agents }]')
const withPermissions = (text: string) => `permissions: ${text}\n${delegating}`

describe('permissions of a team file', () => {
  test('are kept as they stand', () => {
    const text = '{ ask: [transfer_task, "run_*:agent=w*"], deny: [stop_background_agent], allow: [think*, "*"] }'
    expect(teamOf(withPermissions(text)).permissions).toEqual({
      ask: ['transfer_task', 'run_*:agent=w*'],
      deny: ['stop_background_agent'],
      allow: ['think*', '*'],
    })
  })

  test.each(['', '{}', '{ ask: [] }'])('%j say nothing', (text) => {
    expect(teamOf(withPermissions(text)).permissions).toBeUndefined()
  })

  test.each([
    ['x', '1:14 error: "permissions" must be a mapping of keys to values'],
    ['{ ask: all }', '1:21 error: "permissions.ask" must be a list'],
    ['{ ask: [[a]] }', '1:22 error: "permissions.ask[0]" must be text'],
    ['{ ask: [""] }', '1:22 error: "permissions.ask[0]" must be a pattern of tool names'],
    ['{ ask: [":agent=x"] }', '1:22 error: "permissions.ask[0]" must be a pattern of tool names'],
    ['{ deny: ["transfer_[a-z]*"] }', '1:23 error: "transfer_[a-z]*" is not supported by this version'],
    ['{ forbid: [a] }', '1:16 error: "forbid" is not a key of permissions'],
  ])('%s are refused with their place', (text, problem) => {
    expect(problemsOf(withPermissions(text))).toContainEqual(expect.stringContaining(problem))
  })

  test('a pattern that names no tool of the team is told, and does no harm', () => {
    expect(problemsOf(withPermissions('{ ask: ["shell:cmd=rm*", think], deny: [transfer_task] }'))).toEqual([
      '1:22 warning: no agent of this team has a tool that "shell:cmd=rm*" names',
      '1:39 warning: no agent of this team has a tool that "think" names',
    ])
  })
})

describe('what becomes of a call', () => {
  const writer = { agent: 'writer', task: 'Write.' }

  test.each([
    ['nothing said', undefined, 'allow'],
    ['no pattern that names it', { ask: ['think'], deny: ['run_*'] }, 'allow'],
    ['ask before allow', { allow: ['*'], ask: ['transfer_task'] }, 'ask'],
    ['deny before ask', { ask: ['*'], deny: ['transfer_*'] }, 'deny'],
    ['an argument that fits', { ask: ['transfer_task:agent=writ*'] }, 'ask'],
    ['an argument that does not', { ask: ['transfer_task:agent=reader'] }, 'allow'],
    ['two arguments of which one does not', { ask: ['transfer_task:agent=writer:task=Read*'] }, 'allow'],
    ['an argument that is not there', { ask: ['transfer_task:to=*'] }, 'allow'],
    ['an argument of the prototype', { ask: ['transfer_task:constructor=*'] }, 'allow'],
  ] as const)('with %s', (_, permissions, becomes) => {
    expect(permissionOf(permissions, 'transfer_task', writer)).toBe(becomes)
  })

  test('depends on an argument that is no text by its JSON', () => {
    expect(permissionOf({ deny: ['wait_*:timeout=3600'] }, 'wait_background_agents', { timeout: 3600 })).toBe('deny')
  })
})

test('a pattern is a name, with colons or without, and arguments', () => {
  expect(parsePattern('mcp:github:get_*')).toEqual({ tool: 'mcp:github:get_*', args: [] })
  expect(parsePattern('fetch:url=https://x:80/*:method=GET')).toEqual({
    tool: 'fetch',
    args: [
      ['url', 'https://x:80/*'],
      ['method', 'GET'],
    ],
  })
})

test.each([
  ['*', '', true],
  ['a*c', 'abc', true],
  ['a*c', 'abcd', false],
  ['a?c', 'ac', false],
  ['*b*', 'abc', true],
  ['a.c', 'abc', false],
  [`${'*a'.repeat(50)}b`, 'a'.repeat(5_000), false],
])('%s fits %s: %s', (form, text, fits) => {
  expect(matches(form, text)).toBe(fits)
})
