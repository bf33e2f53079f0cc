/** The OpenAPI 3.1 document, made of the schemas that requests are checked with and of the shapes of the answers. */
import * as z from 'zod/mini'
import { ERRORS, type ErrorCode } from '../../domain/errors.ts'
import '../event-shapes.ts'
import { problem, shapes } from '../shapes.ts'
import type { Operation } from './operation.ts'
import { codesOf, OPERATIONS } from './operations.ts'

type Json = { [key: string]: unknown }

const INTRO =
  'Teams of LLM agents, with books that balance. Money is a decimal string in USD without exponent. Lists are read page ' +
  'by page: a page may be shorter than `limit` and still have a `next`. A path that is not here is answered with 404 and ' +
  'the code `not_found`, another method with 405 and `method_not_allowed`; both are problems as all refusals are.'

/** @returns the document as JSON would give it back */
export function openApiDocument(): Json {
  const paths: { [path: string]: Json } = {}
  for (const operation of OPERATIONS) {
    const path = (paths[operation.path] ??= pathItem(operation.path))
    path[operation.method.toLowerCase()] = operationObject(operation)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Subledger',
      version: '1',
      description: INTRO,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { sigv4: [] }, {}],
    paths,
    components: {
      schemas: componentSchemas(),
      headers: {
        Location: { description: 'Where the run is', required: true, schema: { type: 'string' } },
        'Retry-After': { description: 'Seconds', schema: { type: 'integer' } },
      },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        sigv4: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'AWS Signature V4, service execute-api',
        },
      },
    },
  }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Kept a day: the same key and body get the same answer, and nothing is done twice. Another body: 422',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
}

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  description: '`id` of the last event that was received: the answer goes on behind it',
  schema: { type: 'string' },
}

const reference = (id: string): string => `#/components/schemas/${id}`

function componentSchemas(): Json {
  const made = z.toJSONSchema(shapes, { io: 'input', uri: reference }).schemas as { [id: string]: Json }
  return Object.fromEntries(Object.entries(made).map(([id, schema]) => [id, bare(schema)]))
}

/** Without what only a schema that stands alone needs. */
function bare(schema: Json): Json {
  const { $schema: _, $id: __, ...rest } = schema
  return rest
}

const schemaOf = (schema: z.ZodMiniType): Json => {
  const named = shapes.get(schema)
  return named ? { $ref: reference(named.id) } : bare(z.toJSONSchema(schema, { io: 'input' }) as Json)
}

const pathItem = (path: string): Json => {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!)
  if (names.length === 0) return {}
  return { parameters: names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })) }
}

function operationObject(operation: Operation): Json {
  const { method, id, summary, query, body, open } = operation
  const parameters = [
    ...(query ? queryParameters(query) : []),
    ...(method === 'POST' ? [IDEMPOTENCY_KEY] : []),
    ...(operation.resumable ? [LAST_EVENT_ID] : []),
  ]
  return {
    operationId: id,
    summary,
    ...(open && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: !operation.bodyOptional,
        content: { 'application/json': { schema: schemaOf(body) } },
      },
    }),
    responses: {
      ...answers(operation.answer),
      ...answers(operation.also),
      ...refusals(codesOf(operation)),
    },
  }
}

function queryParameters(query: z.ZodMiniObject): Json[] {
  const { properties = {} } = z.toJSONSchema(query, { io: 'input' }) as { properties?: { [name: string]: Json } }
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }))
}

function answers(answer: Operation['answer'] | undefined): Json {
  if (!answer) return {}
  const { status, says, shape, type, location, csv } = answer
  const content = type
    ? { [type]: { schema: { type: 'string' } } }
    : {
        'application/json': { schema: shape ? schemaOf(shape) : { type: 'object' } },
        ...(csv && { 'text/csv': { schema: { type: 'string' } } }),
      }
  return {
    [status]: {
      description: says,
      ...(location && { headers: { Location: { $ref: '#/components/headers/Location' } } }),
      ...(status !== 204 && { content }),
    },
  }
}

/** One response for each status, with the codes that it may have. */
function refusals(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      status,
      {
        description: of.map((code) => `${code}: ${ERRORS[code].title}`).join('. '),
        ...((status === 503 || status === 429) && {
          headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
        }),
        content: {
          'application/problem+json': {
            schema: { allOf: [schemaOf(problem), { properties: { code: { enum: of }, status: { const: status } } }] },
          },
        },
      },
    ]),
  )
}
