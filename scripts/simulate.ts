/**
 * The deterministic simulator.
 *
 *     npm run simulate -- --seeds 10000          seeds 1 to 10000 in two processes, after the grid of two drivers
 *     npm run simulate -- --seeds 500 --from 77  from another first seed on
 *     npm run simulate -- --seed 77              one seed, with its trace
 *     npm run simulate -- --duel 0/3/5           two drivers of shape 0, switched at calls 3 and 5, with its trace
 *     npm run simulate -- --mutants [name]       whether each mutation of the product is noticed
 *
 * It exits with 1 at the first broken invariant, and says how to replay it.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkMutants, MUTANTS, type Mutant, mutated } from '../test/simulator/mutants.ts'
import { duel, grid } from '../test/simulator/plans.ts'
import { addTally, describeTally, emptyTally, type Tally, tallyOutcome } from '../test/simulator/report.ts'
import { runSeed } from '../test/simulator/run-seed.ts'
import { DUELS } from '../test/simulator/shapes.ts'

const PROCESSES = 2
const MUTANT_SEEDS = 2_000
const me = fileURLToPath(import.meta.url)

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    duel: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    part: { type: 'string' },
    hunt: { type: 'boolean', default: false },
  },
})

interface Found {
  /** how it is replayed */
  readonly replay: string
  readonly message: string
}

function whole(name: 'seeds' | 'from' | 'seed' | 'part'): number {
  const n = Number(options[name])
  if (!Number.isSafeInteger(n) || n < 0) {
    console.error(`--${name} is "${options[name]}": it must be a whole number`)
    process.exit(2)
  }
  return n
}

/** Every pair of switch points of two drivers; the first that breaks an invariant. */
async function searchGrid(tell: (name: string, pairs: number) => void): Promise<Found | undefined> {
  for (const [i, { name, scenario, path }] of DUELS.entries()) {
    let pairs = 0
    for await (const { a, b, broken } of grid(scenario, path)) {
      pairs++
      if (broken !== undefined) return { replay: `--duel ${i}/${a}/${b}`, message: broken }
    }
    tell(name, pairs)
  }
  return undefined
}

/** Seeds of one process, every PROCESSES-th. */
async function runPart(part: number): Promise<void> {
  const tally = emptyTally()
  const [from, seeds] = [whole('from'), whole('seeds')]
  let stopped = false
  process.once('message', () => {
    stopped = true
  })
  for (let seed = from + part; seed < from + seeds && !stopped; seed += PROCESSES) {
    tallyOutcome(tally, seed, await runSeed(seed))
    if (tally.broken.length > 0) break
  }
  process.send!(tally)
  process.disconnect()
}

function result<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    let answer: T | undefined
    child.on('message', (message) => {
      answer = message as T
    })
    child.on('error', reject)
    child.on('exit', (code) =>
      answer === undefined ? reject(new Error(`a worker process ended with ${code} and no answer`)) : resolve(answer),
    )
  })
}

async function runAll(): Promise<Found | undefined> {
  const broken = await searchGrid((name, pairs) =>
    console.log(`two drivers of ${name}: ${pairs} pairs of switch points`),
  )
  if (broken) return broken
  const args = ['--seeds', String(whole('seeds')), '--from', String(whole('from'))]
  const parts = Array.from({ length: PROCESSES }, (_, p) => fork(me, [...args, '--part', String(p)]))
  const sum = emptyTally()
  const tallies = parts.map(async (child) => {
    const tally = await result<Tally>(child)
    // one is enough: the others end with the seed that they are at
    if (tally.broken.length > 0) for (const other of parts) if (other.connected) other.send('stop')
    return tally
  })
  for (const tally of await Promise.all(tallies)) addTally(sum, tally)
  console.log(describeTally(sum))
  const first = sum.broken.sort((a, b) => a.seed - b.seed)[0]
  return first && { replay: `--seed ${first.seed}`, message: first.message }
}

/** Looks for a broken invariant in a mutated product. */
async function hunt(): Promise<void> {
  let found: (Found & { tried: number }) | undefined
  for (let seed = 1; seed <= MUTANT_SEEDS && !found; seed++) {
    const { broken } = await runSeed(seed)
    if (broken !== undefined) found = { replay: `--seed ${seed}`, message: broken, tried: seed }
  }
  if (!found) {
    const inGrid = await searchGrid(() => {})
    if (inGrid) found = { ...inGrid, tried: MUTANT_SEEDS }
  }
  process.send!({ found: found ?? null })
}

async function huntMutant(mutant: Mutant): Promise<Found | null> {
  const copy = mutated(mutant, fileURLToPath(new URL('..', import.meta.url)))
  try {
    const child = fork(`${copy.folder}/scripts/simulate.ts`, ['--hunt'], {
      cwd: copy.folder,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    let said = ''
    child.stderr?.on('data', (text) => {
      said += text
    })
    return await result<{ found: Found | null }>(child).then(
      ({ found }) => found,
      (fault) => {
        throw new Error(`${mutant.name}: ${fault.message}\n${said}`)
      },
    )
  } finally {
    copy.remove()
  }
}

async function runMutants(): Promise<boolean> {
  const wanted = process.argv.slice(2).filter((a) => !a.startsWith('--'))
  const left = MUTANTS.filter((m) => wanted.length === 0 || wanted.some((w) => m.name.includes(w)))
  checkMutants(left, fileURLToPath(new URL('..', import.meta.url)))
  const missed: string[] = []
  await Promise.all(
    Array.from({ length: PROCESSES }, async () => {
      for (let mutant = left.shift(); mutant; mutant = left.shift()) {
        const found = await huntMutant(mutant)
        if (!found) missed.push(mutant.name)
        const how = found ? `${found.replay.padEnd(14)} ${found.message.split('\n')[0]}` : 'NOT NOTICED'
        console.log(`${mutant.name.padEnd(54)} ${how.slice(0, 150)}`)
      }
    }),
  )
  console.log(missed.length > 0 ? `not noticed: ${missed.join('; ')}` : 'every mutation is noticed')
  return missed.length === 0
}

function tellBroken({ replay, message }: Found): never {
  console.error(`BROKEN: ${message}\nReplay it: npm run simulate -- ${replay}`)
  process.exit(1)
}

const began = Date.now()
if (options.part !== undefined) await runPart(whole('part'))
else if (options.hunt) await hunt()
else if (options.mutants) process.exitCode = (await runMutants()) ? 0 : 1
else if (options.seed !== undefined) {
  const { world, broken } = await runSeed(whole('seed'), { trace: true })
  console.log(world.trace.join('\n'))
  if (broken !== undefined) tellBroken({ replay: `--seed ${options.seed}`, message: broken })
  console.log('every invariant holds')
} else if (options.duel !== undefined) {
  const [shape, a, b] = options.duel.split('/').map(Number)
  const of = DUELS[shape ?? -1]
  if (!of || a === undefined || b === undefined) throw new Error('--duel takes shape/a/b, such as 0/3/5')
  const { outcome } = await duel(of.scenario, of.path, a, b, true)
  console.log(outcome.world.trace.join('\n'))
  if (outcome.broken !== undefined) tellBroken({ replay: `--duel ${options.duel}`, message: outcome.broken })
  console.log('every invariant holds')
} else {
  const broken = await runAll()
  console.log(`${Math.round((Date.now() - began) / 1000)} s`)
  if (broken) tellBroken(broken)
  console.log('every invariant holds')
}
