/** Files that stand beside the teams are checked as what they are. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { say } from './terminal.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
})
afterAll(() => rm(folder, { recursive: true }))

const TEAMS = join(import.meta.dirname, '../../teams')

test('the schedules that come with the package are good', async () => {
  const file = join(TEAMS, 'schedules.yaml')
  expect(await say(['validate', file])).toEqual({ code: 0, out: `${file}: good (1 schedule)`, err: '' })
})

test('each schedule that is wrong is told, with its file and its name', async () => {
  const file = join(folder, 'schedules.yaml')
  const body = 'team: x, input: y, budget: { usd: 1 }'
  await writeFile(
    file,
    `schedules:\n  a: { rate: 1 minutes, ${body} }\n  good: { rate: 1 day, ${body} }\n  b: { ${body} }\n`,
  )
  const said = await say(['validate', file])
  expect({ code: said.code, out: said.out }).toEqual({ code: 2, out: '' })
  expect(said.err.split('\n')).toEqual([
    `${file}: schedules.a: rate must be such as "5 minutes", "1 hour" or "1 day"`,
    expect.stringMatching(/schedules\.b: .*needs a cron or a rate/),
  ])
})

test('a file of schedules that is no YAML says where', async () => {
  const file = join(folder, 'schedules.yaml')
  await writeFile(file, 'schedules:\n  a: {\n')
  const said = await say(['validate', file])
  expect(said.code).toBe(2)
  expect(said.err).toMatch(/schedules\.yaml: it is not valid YAML: .* line \d+, column \d+$/)
})
