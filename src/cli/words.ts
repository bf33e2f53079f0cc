import { ApiError } from './client.ts'

type Issue = ApiError['issues'][number]

/** Routes, as the commands that do the same. A sentence about another route says nothing at a terminal: it is left out. */
const ROUTES: readonly (readonly [RegExp, string])[] = [
  [/PUT \/v1\/runs\/([^/\s]+)\/budget(?=,)/g, '"subledger budget $1 USD"'],
  [/GET \/v1\/runs lists them/g, '"subledger list" lists them'],
  [/GET \/v1\/runs\/\S+\/sessions lists them/g, '"subledger sessions RUN" lists them'],
  [/ (?:GET|POST|PUT|DELETE) \/v1\/\S+ [^.]*\./g, ''],
]

/** Fields of bodies and parameters of queries, as the options and arguments that they come from. */
const FIELDS: readonly (readonly [RegExp, string])[] = [
  [/^The (?:body|query): /, ''],
  [/^The body has both agent and tasks/, 'There are both --agent and --tasks'],
  [/(^|\s)\/usd(?![/\w])/g, '$1USD'],
  [/(^|\s)\/input(?![/\w])/g, '$1The input'],
  [/(^|\s)\/budget\/tokens(?![/\w])/g, '$1--tokens'],
  [/(^|\s)\/budget(?:\/usd)?(?![/\w])/g, '$1--budget'],
  [/(^|\s)\/sessions(?:\/\d+)?(?![/\w])/g, '$1--session'],
  [/(^|\s)\/tags(?:\/[^\s:]*)?(?=[\s:])/g, '$1--tag'],
  [/(^|\s)\/(agent|tokens|note)(?![/\w])/g, '$1--$2'],
  [/(^|\s)\/team(?![/\w])/g, '$1TEAM'],
  [/(^|\s)\?(status|team|from|to|session)(?!\w)/g, '$1--$2'],
  [/(^|\s)\?groupBy(?!\w)/g, '$1--group-by'],
  [/leave "sessions" out/g, 'leave --session out'],
]

/** What the API says of its routes and fields, as somebody at a terminal knows it. */
export const inWordsOfCommands = (text: string): string =>
  [...ROUTES, ...FIELDS].reduce((said, [from, to]) => said.replace(from, to), text)

/** What the message of an error does not tell yet. It tells of the first thing in words of its own. */
export const untold = (e: { readonly message: string; readonly issues: readonly Issue[] }): readonly Issue[] =>
  e.issues.filter(
    ({ path, message }, i) => !e.message.includes(path) || !(e.message.includes(message) || (i === 0 && path !== '')),
  )

/** `/tasks/1/task` → `tasks.json: tasks[1].task` */
const inTasks = (text: string, file: string): string =>
  text
    .replace(/^The body: (?=\/tasks(?![\w]))/, '')
    .replace(
      /(^|\s)\/tasks((?:\/\w+)*)/g,
      (_, before: string, rest: string) =>
        `${before}${file}: tasks${rest.replace(/\/(\d+)/g, '[$1]').replaceAll('/', '.')}`,
    )

/** A refusal that says which file the tasks are in that it speaks of. */
export function ofTaskFile(e: unknown, file: string): unknown {
  if (!(e instanceof ApiError)) return e
  const issues = e.issues.map(({ path, message }) => ({ path: inTasks(path, file), message }))
  return new ApiError(e.status, inTasks(e.message, file), issues, e.code)
}
