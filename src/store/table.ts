/**
 * The table: the names of its attributes and its definition. Nothing else in the project spells a short attribute name,
 * so code, deployment template and tests cannot disagree. Its keys are in keys.ts.
 */

/** Version of what is written today. Every later release reads every earlier version. */
export const ITEM_VERSION = 1

/**
 * Attribute names, long to short. Short, because names are paid for with every write: a turn of two small messages fits
 * one write unit with these and does not with the long ones. A name is never used for another meaning.
 */
export const A = {
  pk: 'pk',
  sk: 'sk',
  version: 'z',

  // run and session
  status: 's',
  stop: 'x',
  stopReason: 'xr',
  error: 'e',
  round: 'r',
  limitSeq: 'lq',
  raisedRound: 'lR',
  v: 'v',
  createdAt: 'ct',
  updatedAt: 'ut',
  finishedAt: 'ft',
  agent: 'a',

  // run
  team: 'tm',
  definition: 'df',
  inputRef: 'ir',
  inputRound: 'io',
  /** the last round that tried again, and who opened it */
  retryRound: 'rr',
  retryRef: 'rf',
  tasks: 'tk',
  maxConcurrency: 'mc',
  limitUsd: 'lu',
  limitTok: 'lt',
  budgetWarnedAt: 'wd',
  budgetWarnedSeq: 'wq',
  budgetSeq: 'bq',
  books: 'bk',
  sessions: 'sn',
  tags: 'tg',
  cancelRequestedAt: 'ca',
  /** TTL of the table, epoch seconds; on RUN alone: an immutable turn must not expire under a later round */
  expiresAt: 'ttl',
  /** index `runs`: tenant, and run id, which sorts by time */
  runsTenant: 'rt',
  runsId: 'ri',
  /** index `due`: shard, and epoch ms; absent when the sweep need not look again */
  dueShard: 'ds',
  dueAt: 'da',

  // session: place in the tree
  parentId: 'p',
  ordinal: 'o',
  kind: 'k',
  depth: 'd',
  viaTurn: 'vt',
  viaIndex: 'vi',
  // session: driving
  attempt: 'at',
  driver: 'dr',
  lease: 'l',
  continuations: 'cn',
  /** of these, in earlier rounds */
  continuationsBefore: 'cb',
  /** how often it lay down to wait */
  waits: 'wt',
  asks: 'as',
  wakeAt: 'wk',
  width: 'w',
  /** how many children have been invoked, where a parent holds some back */
  started: 'st',
  startedAt: 'sa',
  first: 'fi',
  // session: money, each amount a pair of US dollars (pico-USD) and tokens
  shareUsd: 'su',
  shareTok: 'sT',
  ownUsd: 'ou',
  ownTok: 'ot',
  availUsd: 'au',
  availTok: 'av',
  takenUsd: 'tu',
  takenTok: 'tt',
  lent: 'le',
  givenUsd: 'gu',
  givenTok: 'gt',
  returned: 'rn',
  needs: 'ne',
  wants: 'wn',
  // session: children
  next: 'n',
  deleg: 'dg',
  pending: 'pe',
  waitingOn: 'wo',
  waitAll: 'wa',
  settled: 'se',
  // session: totals
  rows: 'rw',
  unknowns: 'un',
  kidsSessions: 'ks',
  seen: 'sx',
  // session: what a reader wants to see
  taskPreview: 'tp',
  outputPreview: 'op',
  finalTurn: 'fn',

  // slots
  at: 't',
  intent: 'i',
  nextIntent: 'ni',
  end: 'en',
  outcome: 'oc',
  of: 'of',
  model: 'm',
  cause: 'cs',
  usage: 'u',
  usageSource: 'us',
  cost: 'c',
  price: 'pr',
  bound: 'bo',
  /** by how much a call went beyond its hold */
  over: 'ov',
  finishReason: 'fr',
  responseId: 'id',
  answeredBy: 'ab',
  durationMs: 'du',
  isError: 'ie',
  /** JSON text; binary: the same, deflated */
  body: 'b',
  /** a piece of a body as it stands, in a part */
  raw: 'br',
  /** where the parts of a body are */
  parts: 'bp',
  /** number of parts and bytes of the whole, on part 0 of a definition or an input */
  partCount: 'pc',
  partBytes: 'pb',

  /** when the root of the last reported round had ended */
  reportedAt: 'ra',

  // usage of a day
  base: 'ub',
  before: 'bf',
  seal: 'sl',
  closing: 'cl',
  folded: 'fd',
  /** names the list of the items that are in a fold */
  taken: 'tn',

  // a tool call that somebody is asked about
  tool: 'tl',
  decision: 'dn',
  decidedAt: 'dt',
  closedAt: 'cd',
  /** place among the session's questions, and how many its answer has */
  nth: 'nq',
  asked: 'aq',
  by: 'by',
  note: 'no',

  /** what a schedule has done, JSON text */
  state: 'sj',
  // what a tenant has going on
  places: 'pl',

  // other partitions, filled by later work
  bodyHash: 'bh',
  /** names what a request makes, so that its retry finds it */
  token: 'ik',
  /** status of a stored answer; its body stands with it */
  answer: 'an',
  location: 'lo',
  held: 'h',
  // a limit that many share
  name: 'nm',
  spentUsd: 'xu',
  spentTok: 'xt',
  holds: 'hd',
  // what a run holds of limits over time
  grantedUsd: 'gU',
  grantedTok: 'gT',
  grants: 'gs',
  short: 'sh',
} as const

export type AttributeName = keyof typeof A

// Names inside maps.
export const AMOUNT = { usd: 'u', tok: 't' } as const
/** what one holder holds of a shared limit */
export const HOLD = { usd: 'u', tok: 't', seq: 'q', waits: 'w' } as const
export const GRANT = { period: 'p', name: 'n', fromUsd: 'f', fromTok: 'g', holdUsd: 'u', holdTok: 't' } as const
export const SHORTAGE = { needUsd: 'u', needTok: 't', resumeAt: 'w' } as const
export const TOTALS = {
  calls: 'c',
  inputTokens: 'i',
  cacheReadTokens: 'r',
  cacheWriteTokens: 'w',
  cacheWrite1hTokens: 'h',
  outputTokens: 'o',
  reasoningTokens: 't',
  unpricedCalls: 'n',
  cost: 'm',
} as const
export const OUTCOME = { accepted: 'a', failed: 'f', duplicate: 'd', unknown: 'u' } as const
export const ROW = { agent: 'a', model: 'k', outcome: 'x', totals: 't' } as const
export const SEEN = { v: 'v', books: 'b' } as const
export const DELEG = { turn: 't', from: 'f', count: 'c', shareUsd: 'u', shareTok: 'k', funded: 'n' } as const
export const INTENT = {
  holdUsd: 'u',
  holdTok: 't',
  driver: 'd',
  attempt: 'n',
  agent: 'a',
  model: 'm',
  estimate: 'e',
  cap: 'c',
  at: 'w',
} as const
export const BOUND = { holdUsd: 'u', holdTok: 't', estimate: 'e', cap: 'c' } as const
export const PRICE = { input: 'i', output: 'o', cacheRead: 'r', cacheWrite: 'w', cacheWrite1h: 'h' } as const
export const ERROR = { code: 'c', message: 'm' } as const
export const END = { status: 's', reason: 'r', error: 'e' } as const
export const PARTS = { driver: 'd', slot: 's', count: 'c', bytes: 'b' } as const

/** A total of settled children: one flat number per outcome and field, so that settlements can ADD to them. */
export const kidsAttribute = (outcome: keyof typeof OUTCOME, field: keyof typeof TOTALS): string =>
  `k${OUTCOME[outcome]}${TOTALS[field]}`

export const RUNS_INDEX = 'runs'
export const DUE_INDEX = 'due'
export const TTL_ATTRIBUTE = A.expiresAt

/** The table as CreateTable takes it, without its name. TTL and point-in-time recovery are set beside it. */
export const TABLE_DEFINITION = {
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: [
    { AttributeName: A.pk, AttributeType: 'S' },
    { AttributeName: A.sk, AttributeType: 'S' },
    { AttributeName: A.runsTenant, AttributeType: 'S' },
    { AttributeName: A.runsId, AttributeType: 'S' },
    { AttributeName: A.dueShard, AttributeType: 'N' },
    { AttributeName: A.dueAt, AttributeType: 'N' },
  ],
  KeySchema: [
    { AttributeName: A.pk, KeyType: 'HASH' },
    { AttributeName: A.sk, KeyType: 'RANGE' },
  ],
  GlobalSecondaryIndexes: [
    {
      IndexName: RUNS_INDEX,
      KeySchema: [
        { AttributeName: A.runsTenant, KeyType: 'HASH' },
        { AttributeName: A.runsId, KeyType: 'RANGE' },
      ],
      Projection: { ProjectionType: 'ALL' },
    },
    {
      IndexName: DUE_INDEX,
      KeySchema: [
        { AttributeName: A.dueShard, KeyType: 'HASH' },
        { AttributeName: A.dueAt, KeyType: 'RANGE' },
      ],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    },
  ],
} as const
