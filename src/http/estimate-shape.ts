import * as z from 'zod/mini'
import { count, maybeMoney, says, text, texts, time } from './shape-parts.ts'
import { price, shapes } from './shapes.ts'

const how = z.array(text).check(says('how the figures came about, in words'))
export const estimate = z.strictObject({
  team: text,
  agent: texts.check(says('the first agent; null for a list of tasks')),
  tasks: z.nullable(count),
  at: time.check(says('when it was made: prices are those of this time')),
  least: z.strictObject({
    usd: maybeMoney.check(says('null: a price that it needs is not known')),
    tokens: count,
    calls: count.check(says('calls that must be made')),
    how,
  }),
  most: z.strictObject({
    usd: maybeMoney.check(says('null: nothing bounds it, or a price is not known; `how` says why')),
    tokens: z.nullable(count).check(says('null: nothing bounds it')),
    how,
  }),
  agents: z
    .array(
      z.strictObject({
        agent: text,
        model: text.check(says('provider/model')),
        price: z.nullable(price).check(says('what a small prompt costs, as the run would keep it; null: not known')),
        outputCap: count.check(says('output tokens of one call, at most')),
        answers: count.check(says('answers of one session, at most')),
        calls: count.check(says('calls of one session, at most, with those that may fail')),
        firstCalls: z
          .nullable(z.strictObject({ count, leastTokens: count, holdUsd: maybeMoney, holdTokens: count }))
          .check(says('those that the run starts with; the hold is that of the largest one. null: none of this agent')),
      }),
    )
    .check(says('all that may come to work')),
  unpriced: z.array(text).check(says('models of these agents without a known price, provider/model')),
  budget: z
    .nullable(
      z.strictObject({
        usd: maybeMoney,
        tokens: z.nullable(count),
        firstCall: z
          .enum(['whole', 'shrunk', 'no'])
          .check(says('whether it covers a first call: as it is, with a smaller output cap, or not')),
        outputCap: z.nullable(count).check(says('output cap with which it covers one; null: it does not')),
        holdUsd: maybeMoney.check(says('what a first call holds with its whole output cap; null: no price is known')),
        holdTokens: count,
      }),
    )
    .check(says('null: none was given')),
})

shapes.add(estimate, { id: 'Estimate', description: 'The least and the most that a run may cost, before it starts' })
