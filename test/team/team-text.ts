import { type ParseOptions, parseTeam } from '../../src/team/parse-team.ts'

/** A file that nothing is wrong with, as a start for one that something is wrong with. */
export const PRICED = `models:
  fast:
    provider: openai
    model: gpt-4o-mini
    cost: { input: 0.15, output: 0.6, cache_read: 0.075, cache_write: 0.15 }
`

export const parse = (text: string, options: Partial<ParseOptions> = {}) =>
  parseTeam(text, { file: 'team.yaml', ...options })

/** `line:column severity: message` of each problem. */
export const problemsOf = (text: string, options: Partial<ParseOptions> = {}): string[] =>
  parse(text, options).problems.map((p) => `${p.line}:${p.column} ${p.severity}: ${p.message}`)

/** The one team of a text without errors. */
export function teamOf(text: string, options: Partial<ParseOptions> = {}) {
  const { team, problems } = parse(text, options)
  if (!team) throw new Error(`no team: ${problems.map((p) => p.message).join('; ')}`)
  return team
}

/** The model `m` of a file that holds only it and an agent that uses it. */
export const modelOf = (model: string) => teamOf(withModel(model)).models.m

/** A file whose model `m` has these keys from line 5 on, at column 5. */
export const withModel = (model: string): string => `agents:
  root: { model: m }
models:
  m:
${model
  .split('\n')
  .map((line) => `    ${line}`)
  .join('\n')}
`

/** A file whose agent `root` has these keys from line 3 on, at column 5, beside a worker. */
export const withAgent = (agent: string): string => `agents:
  root:
${agent
  .split('\n')
  .map((line) => `    ${line}`)
  .join('\n')}
  worker: { model: fast }
${PRICED}`
