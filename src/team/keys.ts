/**
 * Every key and toolset of docker-agent's team files, and what becomes of it here. One table for the parser, for
 * docs/teams.md and for the test that compares it with docker-agent's own schema.
 *
 * What is inside a key that is not supported shares its fate and is not listed.
 */
export type Fate =
  | 'supported'
  /** accepted, changes nothing */
  | 'no effect'
  /** needs what a Lambda function does not have: a workspace, long-lived processes, a terminal */
  | 'no place on Lambda'
  /** not supported by this version */
  | 'not yet'

export interface Known {
  readonly fate: Fate
  /** why, or what it means */
  readonly note: string
  /** not in the schema that this table follows: of another version of docker-agent, or of Subledger alone */
  readonly from?: 'other version' | 'subledger'
}

/** The mappings of a team file whose keys are checked. `*` is any name, `[]` any item of a list. */
export type Section =
  | ''
  | 'metadata'
  | 'agents.*'
  | 'agents.*.toolsets[]'
  | 'models.*'
  | 'models.*.cost'
  | 'providers.*'
  | 'permissions'
  | 'budget'
  | 'budgets.*'

type Row = readonly [key: string, fate: Fate, note: string, from?: Known['from']]

const budgetRows: readonly Row[] = [
  ['max_cost', 'supported', 'USD; every model under it needs a price', 'other version'],
  ['max_tokens', 'supported', 'tokens of input and output together', 'other version'],
  ['max_time', 'supported', "working time, as `10m` or `1h30m`: the sum of the calls' durations", 'other version'],
]

const SECTIONS: { readonly [S in Section]: readonly Row[] } = {
  '': [
    ['version', 'supported', "docker-agent's version of the format, 0 to 16; the same keys are read in all of them"],
    [
      'agents',
      'supported',
      'the agents by name; the run begins with `root`, or with the first one where there is no `root`',
    ],
    ['models', 'supported', 'the models by name'],
    ['providers', 'supported', 'OpenAI-compatible endpoints by name'],
    ['metadata', 'supported', 'about the file; only its description is shown'],
    ['mcps', 'not yet', 'MCP servers are not supported'],
    ['rag', 'no place on Lambda', 'indexes documents and keeps databases on a local disk'],
    ['permissions', 'supported', 'which tool calls run, wait for somebody to approve them, or are refused; see below'],
    ['budget', 'supported', 'the most that every run of the team may cost or use, as one', 'other version'],
    ['budgets', 'supported', 'shared limits by name, from which agents draw', 'other version'],
    ['commands', 'not yet', 'give the prompt as the input of a run', 'other version'],
    ['flavors', 'not yet', 'write a team file for each flavor', 'other version'],
    ['redact_secrets', 'not yet', 'texts are stored as they are', 'other version'],
    ['runtime', 'no place on Lambda', 'settings of the docker-agent process', 'other version'],
    ['skills', 'no place on Lambda', 'skill files are read from a workspace', 'other version'],
    ['toolsets', 'not yet', 'write the toolset at the agent', 'other version'],
  ],
  metadata: [
    ['author', 'no effect', ''],
    ['license', 'no effect', ''],
    ['readme', 'no effect', ''],
    ['description', 'supported', "what the team is for; without it the first agent's description stands in"],
    ['version', 'no effect', ''],
  ],
  'agents.*': [
    ['model', 'supported', 'a name of `models`, or `provider/model`; required'],
    ['description', 'supported', 'what other agents know of it when they choose whom to delegate to'],
    ['instruction', 'supported', 'the system prompt; placeholders in it are left as they stand'],
    ['toolsets', 'supported', 'a list; see the toolsets below'],
    ['sub_agents', 'supported', 'names of agents it may delegate to; with them it has `transfer_task`'],
    [
      'max_iterations',
      'supported',
      'most answers of one session in one round, above 0; 50 without it, 3 for an agent without tools',
    ],
    [
      'at_end',
      'supported',
      '`stop` (without it) or `wait`: what becomes of sub-sessions that still work when the agent answers',
      'subledger',
    ],
    ['budgets', 'supported', 'names of `budgets`: all of them apply to its calls', 'other version'],
    ['welcome_message', 'no effect', 'there is no chat to show it in'],
    ['fallback', 'not yet', 'a failed call is tried again with the same model'],
    ['handoffs', 'not yet', 'use `sub_agents`'],
    ['structured_output', 'not yet', 'ask for the form in the instruction'],
    ['commands', 'not yet', 'give the prompt as the input of a run'],
    ['num_history_items', 'not yet', 'the whole conversation is sent'],
    ['add_date', 'not yet', 'give the date in the input'],
    ['add_description_parameter', 'not yet', ''],
    ['code_mode_tools', 'not yet', ''],
    ['add_environment_info', 'no place on Lambda', 'there is no working directory or desktop to describe'],
    ['add_prompt_files', 'no place on Lambda', 'there is no workspace to read files from'],
    ['hooks', 'no place on Lambda', 'hooks run shell commands'],
    ['rag', 'no place on Lambda', 'indexes documents and keeps databases on a local disk'],
    ['skills', 'no place on Lambda', 'skill files are read from a workspace'],
    ['force_handoff', 'not yet', 'use `sub_agents`', 'other version'],
    ['harness', 'no place on Lambda', 'runs another agent program', 'other version'],
    ['instruction_file', 'not yet', 'write the text as `instruction`', 'other version'],
    ['readonly', 'not yet', 'there are no tools with effects to hold back', 'other version'],
    ['redact_secrets', 'not yet', 'texts are stored as they are', 'other version'],
    ['use_commands', 'not yet', 'give the prompt as the input of a run', 'other version'],
    ['use_skills', 'no place on Lambda', 'skill files are read from a workspace', 'other version'],
  ],
  'agents.*.toolsets[]': [
    ['type', 'supported', 'see the toolsets below; required'],
    ['instruction', 'not yet', 'add it to the instruction of the agent'],
    ['tools', 'not yet', 'a toolset is taken whole'],
    ['defer', 'not yet', 'every tool is known to the model from the start'],
    ['toon', 'not yet', ''],
    ['model', 'not yet', 'an agent uses one model'],
    ['name', 'not yet', ''],
    ['config', 'not yet', ''],
    ['remote', 'not yet', 'MCP servers are not supported'],
    ['api_config', 'not yet', ''],
    ['timeout', 'not yet', ''],
    ['url', 'not yet', ''],
    ['headers', 'not yet', ''],
    ['models', 'not yet', ''],
    ['path', 'not yet', ''],
    ['shared', 'not yet', ''],
    ['ref', 'no place on Lambda', 'starts a container'],
    ['command', 'no place on Lambda', 'starts a program'],
    ['args', 'no place on Lambda', 'for a program that is started'],
    ['env', 'no place on Lambda', 'for a program that is started'],
    ['version', 'no place on Lambda', 'installs a program'],
    ['shell', 'no place on Lambda', 'runs shell commands'],
    ['post_edit', 'no place on Lambda', 'runs shell commands'],
    ['ignore_vcs', 'no place on Lambda', 'there is no workspace'],
    ['file_types', 'no place on Lambda', 'there is no workspace'],
    ['sandbox', 'no place on Lambda', 'starts a container', 'other version'],
  ],
  'models.*': [
    ['provider', 'supported', 'a name of `providers`, or a provider of the list below; required'],
    ['model', 'supported', "the provider's name of the model; required, except for `scripted`"],
    ['temperature', 'supported', '0 to 2'],
    ['max_tokens', 'supported', 'the most output tokens of one call; it also bounds what is set aside of the budget'],
    [
      'min_tokens',
      'supported',
      'how far max_tokens may shrink where the budget is short; the same: not at all',
      'subledger',
    ],
    ['top_p', 'supported', '0 to 1'],
    ['frequency_penalty', 'supported', '-2 to 2'],
    ['presence_penalty', 'supported', '-2 to 2'],
    ['base_url', 'supported', 'https, or http on the loopback interface'],
    ['token_key', 'supported', 'the name of the environment variable that holds the key, never the key'],
    ['parallel_tool_calls', 'supported', ''],
    ['provider_opts', 'supported', 'settings of the provider; `api_type` chooses the API; for `scripted` the script'],
    ['thinking_budget', 'supported', 'an effort word or a number of tokens, as the provider takes it'],
    ['cost', 'supported', 'USD per million tokens; it goes before the built-in prices', 'other version'],
    ['track_usage', 'supported', 'usage is always booked: `true` changes nothing, `false` is an error'],
    ['routing', 'not yet', 'an agent uses one model'],
    ['auth', 'not yet', 'use `token_key`', 'other version'],
    ['headers', 'not yet', '', 'other version'],
    ['task_budget', 'not yet', '', 'other version'],
  ],
  'models.*.cost': [
    [
      'input',
      'supported',
      'input tokens that are neither read from nor written to the prompt cache; required',
      'other version',
    ],
    ['output', 'supported', 'output tokens, reasoning included; required', 'other version'],
    ['cache_read', 'supported', 'input tokens read from the prompt cache', 'other version'],
    ['cache_write', 'supported', 'input tokens written to the prompt cache', 'other version'],
    ['cache_write_1h', 'supported', 'of these, those that are kept for an hour', 'other version'],
  ],
  'providers.*': [
    ['api_type', 'supported', '`openai_chatcompletions` (without it) or `openai_responses`'],
    ['base_url', 'supported', 'https, or http on the loopback interface; required'],
    ['token_key', 'supported', 'the name of the environment variable that holds the key; without it no key is sent'],
    ['provider', 'not yet', 'providers are OpenAI-compatible endpoints', 'other version'],
    ['auth', 'not yet', 'use `token_key`', 'other version'],
    ['headers', 'not yet', '', 'other version'],
    ['frequency_penalty', 'not yet', 'give it at the model', 'other version'],
    ['max_tokens', 'not yet', 'give it at the model', 'other version'],
    ['parallel_tool_calls', 'not yet', 'give it at the model', 'other version'],
    ['presence_penalty', 'not yet', 'give it at the model', 'other version'],
    ['provider_opts', 'not yet', 'give them at the model', 'other version'],
    ['task_budget', 'not yet', '', 'other version'],
    ['temperature', 'not yet', 'give it at the model', 'other version'],
    ['thinking_budget', 'not yet', 'give it at the model', 'other version'],
    ['top_p', 'not yet', 'give it at the model', 'other version'],
    ['track_usage', 'not yet', 'usage is always booked', 'other version'],
    ['unload_api', 'no place on Lambda', 'for models that run on the same machine', 'other version'],
  ],
  permissions: [
    ['allow', 'supported', 'patterns of tool calls that run, as all do that no pattern names'],
    ['ask', 'supported', 'those that wait until somebody approves or denies them; goes before `allow`'],
    ['deny', 'supported', 'those that are refused; goes before both'],
  ],
  budget: budgetRows,
  'budgets.*': budgetRows,
}

const TOOLSET_ROWS: readonly Row[] = [
  ['think', 'supported', 'the tool `think`: a place to reason in, without effect'],
  [
    'background_agents',
    'supported',
    'start, list, view, stop and wait for sub-agents that work at the same time; needs `sub_agents`',
  ],
  ['a2a', 'not yet', ''],
  ['api', 'not yet', ''],
  ['fetch', 'not yet', ''],
  ['mcp', 'not yet', 'remote servers are not spoken to; those started by `command` or `ref` have no place on Lambda'],
  ['memory', 'not yet', ''],
  ['model_picker', 'not yet', 'an agent uses one model'],
  ['openapi', 'not yet', ''],
  ['tasks', 'not yet', 'start a run from a list of tasks instead'],
  ['todo', 'not yet', ''],
  ['user_prompt', 'not yet', 'nobody is there to be asked; give a follow-up input instead'],
  ['filesystem', 'no place on Lambda', 'there is no workspace'],
  ['lsp', 'no place on Lambda', 'starts a language server'],
  ['script', 'no place on Lambda', 'runs shell commands'],
  ['shell', 'no place on Lambda', 'runs shell commands'],
  ['sandbox', 'no place on Lambda', 'starts a container', 'other version'],
]

const byName = (rows: readonly Row[]): ReadonlyMap<string, Known> =>
  new Map(rows.map(([key, fate, note, from]) => [key, { fate, note, ...(from && { from }) }]))

/** What is known of each key, by section. */
export const KEYS: ReadonlyMap<Section, ReadonlyMap<string, Known>> = new Map(
  Object.entries(SECTIONS).map(([section, rows]) => [section as Section, byName(rows)]),
)

/** What is known of each toolset, by its `type`. */
export const TOOLSETS: ReadonlyMap<string, Known> = byName(TOOLSET_ROWS)

/** Sections other than this one in which a key is supported: where a stray key may have been meant to stand. */
export const homesOf = (key: string, except: Section): Section[] =>
  [...KEYS].filter(([section, keys]) => section !== except && keys.get(key)?.fate === 'supported').map(([s]) => s)

/** `agents.*.model`, as docs and tests name a key. */
export const keyPath = (section: Section, key: string): string => (section === '' ? key : `${section}.${key}`)

/** Why something is not done here, for a message: `"shell" has no place on Lambda: runs shell commands`. */
export function refusal(name: string, { fate, note }: Known): string {
  const what = fate === 'no place on Lambda' ? 'has no place on Lambda' : 'is not supported by this version'
  return `"${name}" ${what}${note ? `: ${note}` : ''}`
}
