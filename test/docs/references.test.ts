/** What the pages name is there: files, links, scripts, commands and their options. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'
import { blocks, codeSpans, PAGES, type Page, ROOT } from './pages.ts'

const SCRIPTS = Object.keys(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts)
/** Written by commands, so they may not be there yet. */
const MADE = /^(dist|\.subledger|\.serverless|\.cache|node_modules)(\/|$)/
/** Written by the reader. */
const TO_BE_WRITTEN = /Save this as `[^`]+`/g
const FOLDERS = /^(src|docs|teams|handlers|test|scripts|bench|bin|\.ci)\/[\w./-]*$/
const FILES = /^(serverless\.yml|package\.json|LICENSE|README\.md)$/

/** Paths of this project in the running text. `src/store/*-writes.ts` stands for its folder. */
const paths = (p: Page): string[] =>
  codeSpans({ ...p, text: p.text.replaceAll(TO_BE_WRITTEN, '') })
    .map((span) => span.replace(/\/[^/]*\*.*$/, '/'))
    .filter((span) => FOLDERS.test(span) || FILES.test(span))

const links = ({ text }: Page): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((m) => m[1]!).filter((l) => !/^(https?|mailto):/.test(l))

/** Lines that somebody is to type: in blocks of shell, and in backticks. */
function typed(p: Page): string[] {
  const shell = blocks(p)
    .filter((b) => ['sh', 'bash', ''].includes(b.language))
    .flatMap((b) => b.text.replaceAll('\\\n', ' ').split('\n'))
  return [...shell, ...codeSpans(p)].flatMap((line) => line.split(/\s(?:&&|;|\|)\s/)).map((line) => line.trim())
}

const npmScripts = (p: Page): string[] =>
  typed(p).flatMap((line) => {
    const m = /^npm (?:run ([\w:-]+)|(start|test))\b/.exec(line)
    return m ? [m[1] ?? m[2]!] : []
  })

/** `npx subledger run …` as its words. */
const commands = (p: Page): string[][] =>
  typed(p)
    .filter((line) => /^(npx )?subledger \w/.test(line))
    .map((line) => line.replace(/^(npx )?subledger /, '').split(/\s+/))

async function help(...argv: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = []
  const print = (line: string) => void lines.push(line)
  const io: Io = { out: print, err: print, env: {}, interrupted: new AbortController().signal, sleep: async () => {} }
  const code = await main(io, argv)
  return { code, text: lines.join('\n') }
}

describe.each(PAGES)('$path', (p) => {
  test('names only files that are there', () => {
    expect(paths(p).filter((path) => !MADE.test(path) && !existsSync(join(ROOT, path)))).toEqual([])
  })

  test('links only to pages and headings that are there', () => {
    const broken = links(p).filter((link) => {
      const [path = '', anchor] = link.split('#')
      const file = path === '' ? join(ROOT, p.path) : join(ROOT, dirname(p.path), path)
      if (!existsSync(file)) return true
      return anchor !== undefined && statSync(file).isFile() && !anchors(readFileSync(file, 'utf8')).has(anchor)
    })
    expect(broken).toEqual([])
  })

  test('names only npm scripts that are there', () => {
    expect(npmScripts(p).filter((name) => !SCRIPTS.includes(name))).toEqual([])
  })

  test('names only commands and options that are there', async () => {
    for (const [name = '', ...rest] of commands(p)) {
      const { code, text } = await help(name, '--help')
      expect([name, code]).toEqual([name, 0])
      const all = `${text} ${(await help('--help')).text}`
      const options = rest.filter((word) => word.startsWith('--')).map((word) => word.replace(/=.*$/, ''))
      expect(options.filter((option) => !all.includes(option))).toEqual([])
    }
  })
})

/** Headings as GitHub makes anchors of them. */
const anchors = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map((m) =>
      m[1]!
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

test('the documentation names scripts, commands and files at all', () => {
  expect(PAGES.flatMap(npmScripts)).toEqual(expect.arrayContaining(['demo', 'start', 'test', 'offline', 'package']))
  expect(PAGES.flatMap(commands).map(([name]) => name)).toEqual(expect.arrayContaining(['validate', 'run', 'get']))
  expect(PAGES.flatMap(paths).length).toBeGreaterThan(30)
  expect(PAGES.flatMap(links).length).toBeGreaterThan(5)
})

test('control: what is not there is found', async () => {
  const wrong: Page = {
    path: 'docs/wrong.md',
    text: '`src/engine/no-such.ts` [x](no-such.md) [y](design.md#no-such) `npm run no-such`\n```sh\nnpx subledger nosuch\n```',
  }
  expect(paths(wrong)).toEqual(['src/engine/no-such.ts'])
  expect(links(wrong)).toEqual(['no-such.md', 'design.md#no-such'])
  expect(npmScripts(wrong)).toEqual(['no-such'])
  expect(commands(wrong)).toEqual([['nosuch']])
  expect((await help('nosuch', '--help')).code).not.toBe(0)
})
