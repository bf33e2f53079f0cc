import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const BIN = join(import.meta.dirname, '../../bin/subledger.mjs')
const run = (...argv: string[]) => spawnSync(process.execPath, [BIN, ...argv], { encoding: 'utf8' })

test('the starter hands on arguments, output and exit code', () => {
  expect(run('validate', 'teams/demo.yaml')).toMatchObject({
    status: 0,
    stdout: 'teams/demo.yaml: good (6 agents, 6 models)\n',
    stderr: '',
  })
  expect(run('fly')).toMatchObject({ status: 2, stdout: '' })
})
