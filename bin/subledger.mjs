#!/usr/bin/env node
// Starts the command line. Plain JavaScript for any Node from 18 on: it finds a Node that runs TypeScript, the one that
// comes with the package's dependencies or the one that runs this file.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const main = join(root, 'src', 'cli', 'main.ts')

/** Node 22.18, 23.6 and 24 take types out of TypeScript by themselves. */
function runsTypeScript(version) {
  const [major, minor] = version.split('.').map(Number)
  return major >= 24 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)
}

if (Number(process.versions.node.split('.')[0]) >= 24) {
  process.argv[1] = main
  await import(pathToFileURL(main).href)
} else {
  const bundled = join(root, 'node_modules', '.bin', 'node')
  const node = existsSync(bundled) ? bundled : runsTypeScript(process.versions.node) ? process.execPath : undefined
  if (node) run(node)
  else {
    console.error(
      `Subledger needs Node 24, and this is ${process.version}. Run "npm ci" in ${root}: it brings Node 24 along on Linux.`,
    )
    process.exitCode = 2
  }
}

function run(node) {
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  child.on('error', (e) => {
    console.error(`Node could not be started at ${node}: ${e.message}`)
    process.exitCode = 2
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal]
  })
}
