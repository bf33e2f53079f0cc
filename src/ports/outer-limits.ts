import type { OuterLimit } from '../domain/outer-limit.ts'

/** The limits over time that a deployment sets. Methods throw when they cannot be read: then nothing may be spent. */
export interface OuterLimits {
  /** those that apply to a run, each once, in an order that is always the same */
  of(run: {
    readonly tenant: string
    readonly team: string
    readonly tags: { readonly [name: string]: string }
  }): Promise<readonly OuterLimit[]>
  /** names of the tags that a run of this tenant has to have */
  requiredTags(tenant: string): Promise<readonly string[]>
}
