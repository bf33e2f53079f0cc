import { runSeed } from '../test/simulator/run-seed.ts'

const from = Number(process.argv[2] ?? 1),
  to = Number(process.argv[3] ?? 200)
const t0 = Date.now()
const kinds = new Map<string, number[]>()
const sizes: number[] = [],
  calls: number[] = []
for (let seed = from; seed <= to; seed++) {
  const o = await runSeed(seed, { trace: process.argv[4] === 'trace' })
  sizes.push(o.world.mirror.headers.size)
  calls.push(o.world.portCalls)
  if (process.argv[4] === 'trace') console.log(o.world.trace.join('\n'))
  if (o.broken) {
    const k = o.broken
      .split('\n')[0]!
      .replace(/root[.\d]*/g, 'S')
      .replace(/\d+/g, 'N')
    const l = kinds.get(k) ?? []
    l.push(seed)
    kinds.set(k, l)
  }
}
const q = (a: number[], p: number) => [...a].sort((x, y) => x - y)[Math.floor(p * (a.length - 1))]
console.log(
  'sessions',
  [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1].map((p) => q(sizes, p)).join(' '),
  'calls',
  [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1].map((p) => q(calls, p)).join(' '),
)
for (const [k, l] of [...kinds].sort((a, b) => b[1].length - a[1].length))
  console.log(l.length, k.slice(0, 220), l.slice(0, 6).join(' '))
console.log((Date.now() - t0) / 1000, 's', process.memoryUsage().rss >> 20, 'MB')
