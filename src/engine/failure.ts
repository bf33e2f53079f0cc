import { ERROR_BYTES } from '../domain/limits.ts'
import { cutBytes } from '../domain/text.ts'
import type { ErrorInfo, ResponseSlot } from '../domain/turn.ts'
import type { ModelErrorClass, ModelFailure } from '../ports.ts'

/** Failures that come again whatever is done. */
const PERMANENT: readonly ModelErrorClass[] = ['auth', 'invalid_request']

/** A failure as the cause of a failed call: `class: text`. */
export const causeOf = (f: ModelFailure): string => cutBytes(`${f.class}: ${f.message}`, ERROR_BYTES)

/** The failure that a call's cause tells. */
export function failureOf(r: ResponseSlot): ErrorInfo | undefined {
  if (r.outcome !== 'failed' || !r.cause) return undefined
  const colon = r.cause.indexOf(': ')
  return { code: r.cause.slice(0, colon), message: r.cause.slice(colon + 2) }
}

export const isPermanent = (e: ErrorInfo): boolean => (PERMANENT as readonly string[]).includes(e.code)
