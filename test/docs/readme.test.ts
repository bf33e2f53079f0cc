/** README.md shows what the demo prints, and stays short. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/system.ts'
import { blocks, page } from './pages.ts'

const readme = page('README.md')

/** Run ids are made of time and chance. */
const withoutIds = (text: string) => text.replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, 'RUN').trim()

describe('README.md', () => {
  test('shows what the demo prints', async () => {
    const lines: string[] = []
    const io: Io = {
      out: (line) => void lines.push(line),
      err: () => {},
      env: {},
      interrupted: new AbortController().signal,
      sleep: (ms) => systemClock.sleep(ms),
    }
    expect(await main(io, ['demo'])).toBe(0)
    const shown = blocks(readme).find((b) => b.text.includes('The books balance.'))
    expect(withoutIds(shown?.text ?? '')).toBe(withoutIds(lines.join('\n')))
  })

  test('takes the run out of the answer as the API gives it', () => {
    const api = blocks(readme).find((b) => b.text.startsWith('RUN=$('))!.text
    const sed = /\| sed -E '([^']+)'\)/.exec(api)![1]!
    const answer = JSON.stringify({ runId: '01M8NJHT4EKV89C1W55DWAKJMK', team: 'fan-out', input: 'Say "hello".' })
    expect(execFileSync('sed', ['-E', sed], { input: answer, encoding: 'utf8' })).toBe('01M8NJHT4EKV89C1W55DWAKJMK')
  })

  test('is under 200 lines', () => {
    expect(readme.text.split('\n').length).toBeLessThan(200)
  })
})
