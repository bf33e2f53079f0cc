/**
 * How much a tenant has going on: one item with a place for each of its runs that has not ended. A place says how many
 * sessions its run may have at once. It is given back by whoever sees that the run has ended, so an item may name runs that
 * are over; it never lacks one that goes on.
 */
export interface PlaceStore {
  /** W34: only while all places together stay within `most`. `places` is what the tenant has now, the run's own included */
  takePlace(tenant: string, place: Place, most: number): Promise<Taken>
  /** W35: nothing where the place is not there any more */
  givePlaceBack(tenant: string, place: Place): Promise<void>
  /**
   * Counts an answer that is about to wait, while there are fewer than `most`. `polls` is what the tenant has now.
   * @param id a ULID: says since when it waits
   */
  takePoll(tenant: string, id: string, most: number): Promise<{ taken: boolean; polls: readonly string[] }>
  /** nothing where it is not there any more */
  givePollBack(tenant: string, id: string): Promise<void>
}

export interface Taken {
  readonly taken: boolean
  readonly places: readonly Place[]
}

export interface Place {
  readonly runId: string
  /** sessions at once that it stands for */
  readonly sessions: number
}
