import { rootSessionId } from '../../src/domain/ids.ts'
import type { SessionRef } from '../../src/domain/run.ts'
import type { Logger } from '../../src/ports.ts'

const RUN = '01JZZZZZZZZZZZZZZZZZZZZZZZ'
export const REF: SessionRef = { tenant: 'local', runId: RUN, sessionId: rootSessionId(RUN) }

/** The n-th of many sessions. */
export const refOf = (n: number): SessionRef => ({ ...REF, sessionId: rootSessionId(`${RUN}/${n}`) })

/** A logger that keeps its lines. */
export function memoryLogger(): Logger & { lines: { level: string; message: string; fields?: object }[] } {
  const lines: { level: string; message: string; fields?: object }[] = []
  const at = (level: string) => (message: string, fields?: object) =>
    void lines.push({ level, message, ...(fields && { fields }) })
  return { lines, info: at('info'), warn: at('warn'), error: at('error') }
}
