/** What the OpenAPI document knows of an operation. */
import type * as z from 'zod/mini'
import type { ErrorCode } from '../../domain/errors.ts'

type Schema = z.ZodMiniType

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** with `{name}` for each parameter */
  readonly path: string
  readonly id: string
  readonly summary: string
  readonly query?: z.ZodMiniObject
  readonly body?: Schema
  /** takes `Last-Event-ID` */
  readonly resumable?: true
  /** the body may be left out */
  readonly bodyOptional?: true
  /** what it answers with when all is well */
  readonly answer: {
    readonly status: 200 | 201 | 202 | 204
    readonly says: string
    /** absent: no content */
    readonly shape?: Schema
    readonly type?: 'text/plain' | 'text/event-stream'
    /** it may be CSV too */
    readonly csv?: true
    /** the answer has a `Location` */
    readonly location?: true
  }
  /** another answer when all is well, for who asks for it */
  readonly also?: { readonly status: 200; readonly says: string; readonly shape?: Schema }
  /** refusals beside those that follow from its kind */
  readonly refusals: readonly ErrorCode[]
  /** holds no data and needs no authentication */
  readonly open?: true
}

/** An answer with a body, when all is well. */
export const ok = (shape: Schema, says: string) => ({ status: 200, says, shape }) as const
