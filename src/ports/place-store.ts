/**
 * How much a tenant has going on: one item with a place for each of its runs that has not ended. A place says how many
 * sessions its run may have at once. It is given back by whoever sees that the run has ended, so an item may name runs that
 * are over; it never lacks one that goes on.
 */
export interface PlaceStore {
  /** W34: only while all places together stay within `most`. `places` is what the tenant has now, the run's own included */
  takePlace(tenant: string, place: Place, most: number): Promise<{ taken: boolean; places: readonly Place[] }>
  /** W35: nothing where the place is not there any more */
  givePlaceBack(tenant: string, place: Place): Promise<void>
}

export interface Place {
  readonly runId: string
  /** sessions at once that it stands for */
  readonly sessions: number
}
