import type { SessionHeader } from '../../../src/domain/session.ts'
import { T0 } from '../../support/builders.ts'

/** States of a session, as they differ from one that runs on its first claim. */
export const NOW = T0 + 5_000
export const LATER = NOW + 90_000
export const nobody = { driver: null, lease: null }
export const queued: Partial<SessionHeader> = { status: 'queued', attempt: 0, startedAt: null, ...nobody }
export const waiting: Partial<SessionHeader> = { status: 'waiting', ...nobody }
export const terminal: { readonly [why: string]: Partial<SessionHeader> } = {
  'it is completed': { status: 'completed' },
  'it is failed': { status: 'failed' },
  'it is cancelled': { status: 'cancelled' },
}
