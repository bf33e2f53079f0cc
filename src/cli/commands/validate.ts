import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseSchedules, SCHEDULES_FILE } from '../../compose-schedules.ts'
import { NotUtf8, readUtf8 } from '../../domain/text.ts'
import { checkScript } from '../../model/parse-script.ts'
import type { PriceTable } from '../../prices/price-table.ts'
import { loadPrices } from '../../prices/prices.ts'
import { LIMITS_FILE } from '../../team/folder-limits.ts'
import { parseTeam } from '../../team/parse-team.ts'
import { formatProblems } from '../../team/problems.ts'
import { parseLimits } from '../../team/read-limits.ts'
import type { KnowsPrice } from '../../team/read-model.ts'
import { type Command, readArguments } from '../command.ts'
import { EXIT, type ExitCode, type Io } from '../io.ts'
import { plural, printable } from '../text.ts'

export const validate: Command = {
  usage: 'validate FILE… [--lenient]',
  summary: 'check team files, limits.yaml and schedules.yaml; what is wrong is told with its place',
  async run(io, argv) {
    const args = readArguments(argv, { lenient: { type: 'boolean' } }, ['FILE', '[FILE]…'])
    const prices = await loadPrices()
    let code: ExitCode = EXIT.ok
    for (const file of args.positionals) {
      if (!(await isValid(io, file, { lenient: args.flag('lenient'), prices }))) code = EXIT.usage
    }
    return code
  },
}

async function isValid(
  io: Io,
  file: string,
  options: { readonly lenient: boolean; readonly prices: PriceTable },
): Promise<boolean> {
  let text: string
  try {
    text = readUtf8(await readFile(file))
  } catch (e) {
    const reason = e instanceof NotUtf8 ? e.message : `cannot be read (${(e as NodeJS.ErrnoException).code})`
    io.err(`${file}: error: ${reason}`)
    return false
  }
  if (basename(file) === LIMITS_FILE) return areValidLimits(io, file, text)
  if (basename(file) === SCHEDULES_FILE) return areValidSchedules(io, file, text)
  const { lenient, prices } = options
  const knowsPrice: KnowsPrice = (model) => prices.of(model) !== undefined
  const { team, problems } = parseTeam(text, { file, lenient, checkScript, knowsPrice })
  if (problems.length > 0) io.err(printable(formatProblems(problems)))
  if (!team) return false
  io.out(`${file}: good (${plural(team.agents.length, 'agent')}, ${plural(Object.keys(team.models).length, 'model')})`)
  return true
}

function areValidLimits(io: Io, file: string, text: string): boolean {
  const { rules, problems } = parseLimits(text, { file })
  if (problems.length > 0) io.err(printable(formatProblems(problems)))
  if (!rules) return false
  io.out(`${file}: good (${plural(rules.length, 'limit')})`)
  return true
}

function areValidSchedules(io: Io, file: string, text: string): boolean {
  const { schedules, errors } = parseSchedules(text, file)
  for (const error of errors) io.err(printable(error))
  if (errors.length > 0) return false
  io.out(`${file}: good (${plural(schedules.length, 'schedule')})`)
  return true
}
