import type { ModelDefinition, ModelPrices } from '../domain/team.ts'

/** What a price depends on besides time and tokens: which model, whose, and served from where (left out: its own host). */
export type AskedModel = Pick<ModelDefinition, 'provider' | 'model' | 'baseUrl'>

/** The providers' price lists. */
export interface Prices {
  /** what is known of the price of exactly this model; undefined: nothing */
  of(model: AskedModel): Promise<ModelPrices | undefined>
}
