import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Reply } from './provider-server.ts'

/** The folder of recorded provider traffic; it is no part of the project. */
export const recordingsFolder: string | undefined = process.env.SUBLEDGER_RECORDINGS || undefined

interface Cassette {
  readonly interactions: readonly {
    readonly response: {
      readonly code: number
      readonly body: string
      readonly headers?: Readonly<Record<string, readonly string[]>>
    }
  }[]
}

/** The responses of a recording as replies of a provider server, in order. */
export function recordedReplies(folder: string, file: string): Reply[] {
  const cassette = parse(readFileSync(join(folder, file), 'utf8')) as Cassette
  return cassette.interactions.map(({ response }) => ({
    status: response.code,
    // encodings and lengths are those of the recorded connection
    headers: { 'content-type': 'text/event-stream' },
    chunks: [response.body],
  }))
}
