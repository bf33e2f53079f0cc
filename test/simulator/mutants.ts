/**
 * Mutations of the product, each an exact replacement of text in a copy of it. A simulator that does not notice one of
 * them would not notice the same mistake in the product either.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Mutant {
  readonly name: string
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
}

const one = (name: string, file: string, find: string, replace: string): Mutant => ({
  name,
  edits: [{ file: `src/${file}`, find, replace }],
})

/** The same put without its condition, for slots whose key ends so. */
const unconditional = (name: string, end: string): Mutant => ({
  name,
  edits: [
    {
      file: 'src/store/log-writes.ts',
      find: 'return putNew(table, { ...base, ...body.attributes })',
      replace: `const whole = { ...base, ...body.attributes }
    return key.sk.endsWith('${end}') ? table.put({ item: whole }).then(() => 'written' as const) : putNew(table, whole)`,
    },
    {
      file: 'src/store/log-writes.ts',
      find: 'if (text === undefined) return putNew(table, base)',
      replace: `if (text === undefined)
      return key.sk.endsWith('${end}') ? table.put({ item: base }).then(() => 'written' as const) : putNew(table, base)`,
    },
  ],
})

export const MUTANTS: readonly Mutant[] = [
  unconditional('response put unconditional', '#1'),
  unconditional('request put unconditional', '#0'),
  one(
    'intent put after the call',
    'engine/loop.ts',
    `  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') d.slots.requests.set(n, slot)
  else await reload(d)
  return 'again'
}

/** The root sees what`,
    `  d.slots.requests.set(n, slot)
  await callModel(d, readState(d.slots, d.header), intent)
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put !== 'written') await reload(d)
  return 'again'
}

/** The root sees what`,
  ),
  {
    name: 'tools run before the response is put',
    edits: [
      {
        file: 'src/engine/call-model.ts',
        find: `import { instantResults } from './tools/run-tools.ts'`,
        replace: `import { instantResults, runTools } from './tools/run-tools.ts'`,
      },
      {
        file: 'src/engine/call-model.ts',
        find: '  const { put, slot } = await bookOutcome(d, whole)\n',
        replace: `  if (whole.message?.toolCalls.length && !whole.next) await runTools(d, whole)
  const { put, slot } = await bookOutcome(d, whole)\n`,
      },
    ],
  },
  one(
    'settle without its membership condition',
    'store/delegation-writes.ts',
    `all('contains(#pending, :ordinal)', lentIs(s.lent), returnedIs(s.returned ?? null))`,
    `all('contains(#pending, :ordinal) OR attribute_exists(#pk)', lentIs(s.lent), returnedIs(s.returned ?? null))`,
  ),
  {
    name: 'settle ignoring what was lent',
    edits: [
      {
        file: 'src/store/delegation-writes.ts',
        find: `all('contains(#pending, :ordinal)', lentIs(s.lent), returnedIs(s.returned ?? null))`,
        replace: `all('contains(#pending, :ordinal)', s.lent ? \`\${lentIs(s.lent)} OR attribute_exists(#pk)\` : false, returnedIs(s.returned ?? null))`,
      },
    ],
  },
  one(
    `settle's addition repeated on an SDK retry`,
    'store/delegation-writes.ts',
    `all('contains(#pending, :ordinal)', lentIs(s.lent), returnedIs(s.returned ?? null))`,
    `all('contains(#pending, :ordinal) OR #updatedAt = :now', lentIs(s.lent), returnedIs(s.returned ?? null))`,
  ),
  one(
    'no wake after a refused settle',
    'engine/settle.ts',
    `      await wake(ctx, parentRef, parent)
      if (refused)`,
    '      if (refused)',
  ),
  one(
    'suspend not conditional on what was read',
    'store/session-writes.ts',
    `          on === 'all' && 'attribute_exists(#pending)',
          ordinals !== undefined && '#settled = :settled',`,
    `          ordinals !== undefined && '#settled = :settled OR attribute_exists(#pk)',`,
  ),
  one(
    'child invoked before its header is put',
    'engine/delegate.ts',
    'await inBatches(children, (c) => store.putHeader(c.header))',
    `await inBatches(children, async (c) => {
    await invoker.invoke(c.ref)
    await store.putHeader(c.header)
  })`,
  ),
  one(
    'delegation fenced by pending instead of the watermark',
    'store/delegation-writes.ts',
    `          '#next = :from',
          '#deleg.#turn < :turn',`,
    `          'NOT contains(#pending, :from) OR #next < :from',
          '#deleg.#turn < :turn OR attribute_exists(#pk)',`,
  ),
  one(
    'log not closed before the header is terminal',
    'engine/loop.ts',
    `  const slot: RequestSlot = { n, round: d.header.round, messages: [], end, at: now(d) }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written')`,
    `  const slot: RequestSlot = { n, round: d.header.round, messages: [], end, at: now(d) }
  const put = 'written' as 'written' | 'already'
  if (put === 'written')`,
  ),
  one(
    'own money and money to give taken from one number',
    'store/delegation-writes.ts',
    `set: ['#next = :next', ...less('avail', 'sum'),`,
    `set: ['#next = :next', ...less('own', 'sum'),`,
  ),
  one(
    'late answer dropped',
    'engine/call-model.ts',
    '  await d.ctx.store.bookLate(d.ref, { ...late, outcome, cause }, d.driver)\n',
    '  void [late, outcome, cause]\n',
  ),
  one('a lost call booked at 0', 'engine/loop.ts', 'cost: price && intent.hold.usd,', 'cost: price && 0n,'),
  one(
    'cancel overwriting completed',
    'store/run-writes.ts',
    `all('#status = :waiting', 'attribute_not_exists(#stop)')`,
    `all('#status IN (:waiting, :completed)', 'attribute_not_exists(#stop)')`,
  ),
  one(
    'completed overwriting cancelled',
    'store/session-writes.ts',
    `  ['#status = :queued'],`,
    `  ['#status IN (:queued, :cancelled)'],`,
  ),
  one(
    `the Lambda request id used as the driver's nonce`,
    'engine/run-session.ts',
    'const driver = ctx.ids.nonce()',
    'const driver = (ctx.ids as unknown as { requestId(): string }).requestId()',
  ),
]

/** @throws Error naming each text that does not stand exactly once in its file */
export function checkMutants(mutants: readonly Mutant[], root: string): void {
  const wrong = mutants.flatMap(({ name, edits }) =>
    edits.flatMap(({ file, find }) => {
      const times = readFileSync(join(root, file), 'utf8').split(find).length - 1
      return times === 1 ? [] : [`${name}: the text to replace stands ${times} times in ${file}:\n${find}`]
    }),
  )
  if (wrong.length > 0) throw new Error(wrong.join('\n'))
}

/** A copy of what the simulator runs, with one mutation in it. */
export function mutated(mutant: Mutant, root: string): { folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'subledger-mutant-'))
  for (const part of ['src', 'test/simulator', 'scripts', 'package.json', 'tsconfig.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, find, replace } of mutant.edits) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(
      join(folder, file),
      text.replace(find, () => replace),
    )
  }
  return { folder, remove: () => rmSync(folder, { recursive: true }) }
}
