import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { KEYS, type Known, keyPath, TOOLSETS } from '../../src/team/keys.ts'
import { PROVIDERS } from '../../src/team/providers.ts'
import { problemsOf, withAgent, withModel } from './team-text.ts'

const entries: [path: string, known: Known][] = [...KEYS].flatMap(([section, keys]) =>
  [...keys].map(([key, known]): [string, Known] => [keyPath(section, key), known]),
)

describe('docs/teams.md lists', () => {
  const docs = readFileSync(new URL('../../docs/teams.md', import.meta.url), 'utf8')
  /** The cells of the rows of the table under a heading. */
  const rowsUnder = (heading: string): string[][] => {
    const [, part = ''] = docs.split(`\n### ${heading}\n`)
    const lines = part.split(/\n##/)[0]!.split('\n')
    return lines
      .filter((line) => line.startsWith('| `'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((c) => c.trim()),
      )
  }
  const origin = ({ from }: Known) => (from === 'subledger' ? ' (Subledger)' : '')

  test.each([
    ['Keys', entries],
    ['Toolsets', [...TOOLSETS]],
    ['Providers', [...PROVIDERS]],
  ] as const)('%s as the table has them', (heading, known) => {
    const expected = known.map(([name, k]) => [`\`${name}\`${origin(k)}`, k.fate, k.note])
    expect(rowsUnder(heading)).toEqual(expected)
  })
})

describe('the table', () => {
  test('decides: every key and toolset that is not supported is refused, and left out leniently', () => {
    const refused = (text: string, name: string) => problemsOf(text).filter((p) => p.includes(`error: "${name}`))
    const left = (text: string) => problemsOf(text, { lenient: true }).filter((p) => p.includes('it is left out'))
    for (const [name, { fate }] of TOOLSETS) {
      const text = withAgent(`model: fast\nsub_agents: [worker]\ntoolsets: [{ type: ${name} }]`)
      expect(refused(text, name), name).toHaveLength(fate === 'supported' ? 0 : 1)
      expect(left(text), name).toHaveLength(fate === 'supported' ? 0 : 1)
    }
    const places: [section: Parameters<typeof keyPath>[0], text: (key: string) => string][] = [
      ['', (key) => `${withAgent('model: fast')}${key}: x\n`],
      ['metadata', (key) => `metadata: { ${key}: x }\n${withAgent('model: fast')}`],
      ['agents.*', (key) => withAgent(`model: fast\n${key}: x`)],
      ['agents.*.toolsets[]', (key) => withAgent(`model: fast\ntoolsets: [{ type: think, ${key}: x }]`)],
      ['models.*', (key) => withModel(`provider: openai\n${key}: x\nmodel: x`)],
      ['models.*.cost', (key) => withModel(`provider: openai\nmodel: x\ncost: { ${key}: x }`)],
      ['providers.*', (key) => `providers: { p: { ${key}: x } }\n${withAgent('model: fast')}`],
      ['permissions', (key) => `permissions: { ${key}: [x] }\n${withAgent('model: fast')}`],
      ['budget', (key) => `budget: { ${key}: x }\n${withAgent('model: fast')}`],
      ['budgets.*', (key) => `budgets: { b: { ${key}: x } }\n${withAgent('model: fast')}`],
    ]
    expect(places.map(([section]) => section)).toEqual([...KEYS.keys()])
    for (const [section, text] of places)
      for (const [key, { fate }] of KEYS.get(section)!) {
        if (fate === 'supported' && text(key).match(new RegExp(`\\b${key}: `, 'g'))!.length > 1) continue
        const done = fate === 'supported' || fate === 'no effect'
        expect(left(text(key)), keyPath(section, key)).toHaveLength(done ? 0 : 1)
        const words = fate === 'not yet' ? 'is not supported by this version' : 'has no place on Lambda'
        const said = problemsOf(text(key)).filter((p) => p.includes(`error: "${key}" ${words}`))
        expect(said, keyPath(section, key)).toHaveLength(done ? 0 : 1)
      }
  })
})

/** Folder of docker-agent's own schema, docker-agent-schema.json. */
const reference = process.env.SUBLEDGER_REFERENCE

interface Schema {
  $ref?: string
  properties?: { [key: string]: Schema }
  additionalProperties?: boolean | Schema
  items?: Schema
  enum?: string[]
  definitions?: { [name: string]: Schema }
}

describe('beside the schema of docker-agent', () => {
  const why = 'SUBLEDGER_REFERENCE does not name the folder of docker-agent-schema.json'
  const read = (): Schema => JSON.parse(readFileSync(join(reference!, 'docker-agent-schema.json'), 'utf8'))
  const fates = new Map(entries)

  /** Paths of all keys; what is inside a key that is not supported is not looked into. */
  function keysOf(root: Schema): string[] {
    const found: string[] = []
    const walk = (schema: Schema | undefined, path: string): void => {
      if (!schema) return
      if (schema.$ref) walk(root.definitions?.[schema.$ref.replace('#/definitions/', '')], path)
      for (const [key, inner] of Object.entries(schema.properties ?? {})) {
        const here = path === '' ? key : `${path}.${key}`
        found.push(here)
        const fate = fates.get(here)?.fate
        if (fate === undefined || fate === 'supported') walk(inner, here)
      }
      if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}.*`)
      walk(schema.items, `${path}[]`)
    }
    walk(root, '')
    return found
  }

  test('every key has its place in the table, and the table has no other keys that claim to be of this schema', ({
    skip,
  }) => {
    skip(!reference, why)
    const inSchema = keysOf(read()).toSorted()
    const inTable = entries.filter(([, k]) => !k.from).map(([path]) => path)
    expect(inTable.toSorted()).toEqual(inSchema)
    expect(entries.filter(([path, k]) => k.from && inSchema.includes(path))).toEqual([])
  })

  test('so have the toolsets', ({ skip }) => {
    skip(!reference, why)
    const inSchema = read().definitions?.Toolset?.properties?.type?.enum?.toSorted()
    expect(
      [...TOOLSETS]
        .filter(([, k]) => !k.from)
        .map(([type]) => type)
        .toSorted(),
    ).toEqual(inSchema)
  })

  test('a key that the table does not know would be found', ({ skip }) => {
    skip(!reference, why)
    const schema = read()
    schema.definitions!.AgentConfig!.properties!.brand_new = {}
    expect(keysOf(schema)).toContain('agents.*.brand_new')
  })
})
