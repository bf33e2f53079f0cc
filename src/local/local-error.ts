/** Local mode cannot start for a reason that whoever starts it can do something about. */
export class LocalError extends Error {
  override readonly name = 'LocalError'
}
