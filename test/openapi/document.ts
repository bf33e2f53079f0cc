/** The OpenAPI document as its readers see it: operations, and the answers that it allows. */
import { Ajv2020 } from 'ajv/dist/2020.js'

export interface Documented {
  /** `POST /v1/runs` */
  readonly name: string
  readonly id: string
  readonly method: string
  readonly path: string
  readonly body: object | undefined
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[]
  readonly security: boolean
  /** statuses with the codes that each may have; none for those that are no refusal */
  readonly answers: readonly { readonly status: number; readonly codes: readonly string[] }[]
}

export interface ReadDocument {
  readonly document: object
  readonly operations: readonly Documented[]
  readonly codes: readonly string[]
  /** what is wrong with an answer; empty: it is as the document says */
  check(operation: Documented, response: Response, body: string): string[]
}

// biome-ignore lint/suspicious/noExplicitAny: a document of any shape is walked through
type Any = any

export function readDocument(document: object): ReadDocument {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addSchema(document, 'doc')
  const paths: Any = (document as Any).paths
  const operations = Object.entries<Any>(paths).flatMap(([path, item]) =>
    Object.entries<Any>(item)
      .filter(([method]) => method !== 'parameters')
      .map(
        ([method, op]): Documented => ({
          name: `${method.toUpperCase()} ${path}`,
          id: op.operationId,
          method: method.toUpperCase(),
          path,
          body: op.requestBody?.content['application/json'].schema,
          parameters: [...(item.parameters ?? []), ...(op.parameters ?? [])],
          security: op.security === undefined,
          answers: Object.entries<Any>(op.responses).map(([status, response]) => ({
            status: Number(status),
            codes: response.content?.['application/problem+json']?.schema.allOf[1].properties.code.enum ?? [],
          })),
        }),
      ),
  )
  const pointer = (...parts: readonly string[]) =>
    parts.map((p) => encodeURIComponent(p.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')

  return {
    document,
    operations,
    codes: (document as Any).components.schemas.Problem.properties.code.enum,
    check(operation, response, body) {
      const told = paths[operation.path][operation.method.toLowerCase()].responses[String(response.status)]
      if (!told) return [`the status ${response.status} is not documented: ${body.slice(0, 300)}`]
      const wrong: string[] = []
      for (const name of Object.keys(told.headers ?? {}))
        if (!response.headers.has(name)) wrong.push(`the header ${name} is missing`)
      const type = (response.headers.get('content-type') ?? '').split(';')[0]!
      const types = Object.keys(told.content ?? {})
      if (types.length === 0) return body === '' ? wrong : [...wrong, 'there is a body']
      if (!types.includes(type)) return [...wrong, `the content type is ${type}, and not ${types.join(' or ')}`]
      if (!type.endsWith('json')) return wrong
      const at = ['paths', operation.path, operation.method.toLowerCase(), 'responses', String(response.status)]
      const validate = ajv.getSchema(`doc#/${pointer(...at, 'content', type, 'schema')}`)
      if (!validate) throw new Error(`${operation.name} ${response.status} has no schema`)
      if (!validate(JSON.parse(body))) wrong.push(ajv.errorsText(validate.errors))
      return wrong
    },
  }
}
