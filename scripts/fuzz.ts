/**
 * Random requests to the API in process, made from its OpenAPI document.
 *
 *     npm run fuzz -- --requests 20000 [--seed N]
 *
 * Prints what was sent and what came of it; exit 1 when a request was answered with a fault, hung, was answered otherwise
 * than documented, or was valid and refused.
 */
import { parseArgs } from 'node:util'
import { fuzz } from '../test/openapi/fuzz.ts'

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
})
const numbers = { requests: Number(values.requests), seed: Number(values.seed) }
for (const [name, value] of Object.entries(numbers))
  if (!Number.isSafeInteger(value) || value < 1) {
    console.error(`--${name} must be a whole number above 0`)
    process.exit(2)
  }

const report = await fuzz(numbers)
const { wrong, ...figures } = report
console.log(JSON.stringify(figures, null, 2))
for (const line of wrong) console.error(line)
console.log(`${report.requests} requests, ${report.valid} of them valid, ${wrong.length} answered wrongly`)
process.exitCode = wrong.length > 0 ? 1 : 0
