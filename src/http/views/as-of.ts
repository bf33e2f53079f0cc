import type { SessionHeader } from '../../domain/session.ts'

/**
 * How old a session's own figures are, epoch ms. While it runs they are refreshed with the lease, so they are as old as
 * the lease's last renewal; at all other times they change only when the header does.
 */
export function sessionAsOf(header: SessionHeader, leaseMs: number): number {
  if (header.status !== 'running' || header.lease === null) return header.updatedAt
  // a lease cut short by the invocation's deadline gives an earlier time: on the safe side
  return Math.max(header.lease - leaseMs, header.createdAt)
}

/** How old the sum over a tree is: as old as its oldest part that is still changing. */
export function treeAsOf(headers: readonly SessionHeader[], leaseMs: number): number | undefined {
  const running = headers.filter((h) => h.status === 'running')
  if (running.length > 0) return Math.min(...running.map((h) => sessionAsOf(h, leaseMs)))
  return headers.length === 0 ? undefined : lastChange(headers)
}

export const lastChange = (headers: readonly SessionHeader[]): number =>
  headers.reduce((last, h) => Math.max(last, h.updatedAt), 0)
