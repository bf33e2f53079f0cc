/** docs/operations.md says the numbers and the names that the code and the stack have. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as limits from '../../src/domain/limits.ts'
import { blocks, code, PAGES, page, ROOT, table } from './pages.ts'

const doc = page('docs/operations.md')
/** Between the parts of one command, or for tests alone: nobody sets them. */
const INTERNAL = /^SUBLEDGER_(OFFLINE\w*|DYNAMODB_INSIDE|TEST_\w+|RECORDINGS|REFERENCE)$/

const sources = ['src', 'handlers', 'scripts']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }))
  .filter((f) => f.isFile() && /\.(ts|mjs|cjs)$/.test(f.name))
  .map((f) => readFileSync(join(f.parentPath, f.name), 'utf8'))
const stack = readFileSync(join(ROOT, 'serverless.yml'), 'utf8')

test('every variable that the code reads is listed, and no other', () => {
  const read = new Set([...sources, stack].flatMap((text) => text.match(/SUBLEDGER_[A-Z]+(_[A-Z]+)*/g) ?? []))
  const listed = table(doc, 'variable', 'unless set').map(([name]) => code(name!))
  expect(listed.toSorted()).toEqual([...read].filter((name) => !INTERNAL.test(name)).sort())
})

test('no page names a variable that nobody reads', () => {
  const text = [...sources, stack, readFileSync(join(ROOT, '.ci/run'), 'utf8')].join('\n')
  const named = PAGES.flatMap((p) => p.text.match(/SUBLEDGER_[A-Z]+(_[A-Z]+)*(?!\w)/g) ?? [])
  expect([...new Set(named)].filter((name) => name !== 'SUBLEDGER_' && !text.includes(name))).toEqual([])
})

test('the parameters are those of the stack, with their defaults', () => {
  const defaults = parse(stack).params.default as { [name: string]: unknown }
  const listed = table(doc, 'parameter', 'unless given').map(([name, value]) => [code(name!), code(value!)])
  const text = (value: unknown) => (value === '' ? 'none' : String(value))
  expect(Object.fromEntries(listed)).toEqual(
    Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, text(value)])),
  )
})

test('the limits are those of the code', () => {
  const listed = table(doc, 'limit', 'value').map(([, value, name]) => [
    code(name!),
    Number(value!.replaceAll(',', '')),
  ])
  const { DUE_SHARDS: _, ...shown } = limits
  expect(Object.fromEntries(listed)).toEqual(shown)
})

const VERBS: { readonly [word: string]: string } = {
  get: 'GetItem',
  put: 'PutItem',
  update: 'UpdateItem',
  delete: 'DeleteItem',
  query: 'Query',
}

test('the functions are those of the stack, and may do on the table what their roles say', () => {
  const { functions, resources } = parse(stack)
  const rows = table(doc, 'function', 'started by')
  expect(rows.map(([name]) => code(name!)).sort()).toEqual(Object.keys(functions).sort())
  for (const [name, , may] of rows) {
    const policies = resources.Resources[functions[code(name!)].role].Properties.Policies
    const statements: { Action: string | string[]; Resource: unknown }[] = policies.flatMap(
      (p: { PolicyDocument?: { Statement: object[] } }) => p.PolicyDocument?.Statement ?? [],
    )
    const verbsOn = (arn: string) => {
      const actions = statements.filter((s) => s.Resource === `\${self:custom.${arn}}`).flatMap((s) => s.Action)
      return Object.values(VERBS).filter((verb) => actions.includes(`dynamodb:${verb}`))
    }
    const [table = '', index] = may!.split('; ')
    const said = table.split(', ').filter((word) => word !== '')
    expect([name, said.map((word) => VERBS[word])]).toEqual([name, verbsOn('tableArn')])
    const indexes = ['due', 'runs'].filter((i) => verbsOn(`${i}IndexArn`).length > 0)
    expect([name, index]).toEqual([name, indexes.length > 0 ? `query of index \`${indexes}\`` : undefined])
  }
})

test('the log messages are those of the code', () => {
  const code = readdirSync(join(ROOT, 'handlers')).map((f) => readFileSync(join(ROOT, 'handlers', f), 'utf8'))
  const all = [...sources, ...code].join('\n')
  const listed = table(doc, 'message', 'level').flatMap(([messages]) =>
    [...messages!.matchAll(/`([^`]+)`/g)].map((m) => m[1]!),
  )
  expect(listed.length).toBeGreaterThan(10)
  expect(listed.filter((message) => !all.includes(`'${message}'`))).toEqual([])
})

describe('the commands for deploying', () => {
  const lines = PAGES.flatMap((p) => blocks(p).filter((b) => b.language === 'sh')).flatMap((b) => b.text.split('\n'))

  test('give only parameters that the stack has', () => {
    const given = lines.flatMap((line) => [...line.matchAll(/--param[ =]"?(\w+)=/g)].map((m) => m[1]!))
    expect(given.length).toBeGreaterThan(0)
    expect(given.filter((name) => !(name in parse(stack).params.default))).toEqual([])
  })
})
