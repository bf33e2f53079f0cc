import { readFile } from 'node:fs/promises'
import { checkScript } from '../../model/parse-script.ts'
import { parseTeam } from '../../team/parse-team.ts'
import { formatProblems } from '../../team/problems.ts'
import { type Command, readArguments } from '../command.ts'
import { EXIT, type ExitCode, type Io } from '../io.ts'
import { plural, printable } from '../text.ts'

export const validate: Command = {
  usage: 'validate FILE… [--lenient]',
  summary: 'check team files; what is wrong is told with file, line and column',
  async run(io, argv) {
    const args = readArguments(argv, { lenient: { type: 'boolean' } }, ['FILE', '[FILE]…'])
    let code: ExitCode = EXIT.ok
    for (const file of args.positionals) {
      if (!(await isValid(io, file, args.flag('lenient')))) code = EXIT.usage
    }
    return code
  },
}

async function isValid(io: Io, file: string, lenient: boolean): Promise<boolean> {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file))
  } catch (e) {
    const reason =
      e instanceof TypeError ? 'is not UTF-8 text' : `cannot be read (${(e as NodeJS.ErrnoException).code})`
    io.err(`${file}: error: ${reason}`)
    return false
  }
  const { team, problems } = parseTeam(text, { file, lenient, checkScript })
  if (problems.length > 0) io.err(printable(formatProblems(problems)))
  if (!team) return false
  io.out(`${file}: good (${plural(team.agents.length, 'agent')}, ${plural(Object.keys(team.models).length, 'model')})`)
  return true
}
