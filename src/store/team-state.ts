/** What the runs of a team share: cool-downs of its models. */
import type { Store } from '../ports.ts'
import { ItemReader } from './item-reader.ts'
import { stateKey } from './keys.ts'
import { placeholders } from './statements.ts'
import { A } from './table.ts'
import type { TableClient } from './table-client.ts'

type TeamState = Pick<Store, 'getCoolDown' | 'coolDown'>

const name = (model: string) => `cool-down/${model}`

export function teamState(table: TableClient): TeamState {
  return {
    async getCoolDown(tenant, team, model) {
      const key = stateKey(tenant, team, name(model))
      const { item } = await table.get({ key, consistent: false })
      return item && new ItemReader(item, A, `${key.pk} ${key.sk}`).whole('wakeAt')
    },

    /** Conditional on being later, so that of many workers refused at once the longest pause stands. */
    async coolDown(tenant, team, model, until) {
      const condition = 'attribute_not_exists(#wakeAt) OR #wakeAt < :until'
      const update = 'SET #wakeAt = :until'
      const { names, values } = placeholders([condition, update], { values: { ':until': until } })
      await table.update({ key: stateKey(tenant, team, name(model)), condition, update, names, values })
    },
  }
}
