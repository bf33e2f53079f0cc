/** Imports run one way: domain <- ports <- adapters and engine <- http, compose <- handlers, local, cli. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** What each layer may import of the others. */
const MAY: { readonly [layer: string]: readonly string[] } = {
  domain: [],
  ports: ['domain'],
  store: ['domain', 'ports'],
  model: ['domain', 'ports'],
  invoke: ['domain', 'ports'],
  team: ['domain', 'ports'],
  prices: ['domain', 'ports'],
  engine: ['domain', 'ports'],
  http: ['domain', 'ports', 'engine'],
}
/** Those that choose and wire: they may import every layer above, and each other. */
const TOP = ['compose', 'config', 'local', 'cli', 'logger', 'metrics', 'system', 'handlers']
const EMULATOR = 'dynalite'

interface Source {
  readonly path: string
  readonly text: string
}

function sources(folder: string): Source[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((f) => f.isFile() && f.name.endsWith('.ts'))
    .map((f) => join(f.parentPath, f.name))
    .map((path) => ({ path: relative(ROOT, path), text: readFileSync(path, 'utf8') }))
}

/** `src/engine/loop.ts` is of layer engine, `src/ports.ts` of ports, `src/compose-worker.ts` of compose. */
function layerOf(path: string): string {
  const [first, second = ''] = path.split('/')
  if (first !== 'src') return first!
  const name = second.replace(/\.ts$/, '')
  return TOP.find((t) => name === t || name.startsWith(`${t}-`)) ?? name
}

function imports(source: Source): string[] {
  return [...source.text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((m) => m[1]!)
}

/** Every import that goes the wrong way, as `file -> what`. */
function wrongWay(all: readonly Source[]): string[] {
  return all.flatMap((source) => {
    const from = layerOf(source.path)
    return imports(source).flatMap((specifier) => {
      if (!specifier.startsWith('.')) {
        const wrong = specifier === EMULATOR && from !== 'local'
        return wrong ? [`${source.path} -> ${specifier}`] : []
      }
      const to = layerOf(join(dirname(source.path), specifier))
      const may = MAY[from]
      const wrong = to !== from && (may ? !may.includes(to) : to === 'handlers' || to === 'test')
      return wrong ? [`${source.path} -> ${to}`] : []
    })
  })
}

const all = [...sources('src'), ...sources('handlers')]

describe('imports', () => {
  test('run one way', () => {
    expect(all.length).toBeGreaterThan(50)
    expect(wrongWay(all)).toEqual([])
  })

  test('every file belongs to a layer', () => {
    expect([...new Set(all.map((s) => layerOf(s.path)))].filter((l) => !(l in MAY) && !TOP.includes(l))).toEqual([])
  })

  test('control: an engine that imports an adapter, an adapter that imports the engine, and the emulator are found', () => {
    const bad: Source[] = [
      { path: 'src/engine/loop.ts', text: "import { createStore } from '../store/store.ts'" },
      { path: 'src/store/store.ts', text: "import type { Drive } from '../engine/drive.ts'" },
      { path: 'src/domain/run.ts', text: "const x = await import('../ports.ts')" },
      { path: 'src/engine/tools/plan.ts', text: "import { app } from '../../http/app.ts'" },
      { path: 'src/http/app.ts', text: "import dynalite from 'dynalite'" },
    ]
    expect(wrongWay(bad)).toHaveLength(bad.length)
  })
})

test('no file of the product is much above 300 lines', () => {
  const long = all.filter((s) => s.text.split('\n').length > 330).map((s) => s.path)
  expect(long).toEqual([])
})
