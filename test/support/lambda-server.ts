import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LambdaServer {
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** every invocation asked for, in order */
  readonly requests: { readonly functionName: string; readonly type: string | undefined; readonly body: string }[]
  settled(): Promise<void>
  close(): Promise<void>
}

/** What the server answers instead of 202 to the n-th request (0 is the first); undefined: nothing special. */
export type Refusal = (
  n: number,
) => { readonly status: number; readonly type?: string; readonly body: object } | undefined

/** The Invoke operation of Lambda's API over HTTP, for the functions given. Loopback only. */
export async function startLambdaServer(
  functions: { readonly [name: string]: (event: unknown) => Promise<void> },
  refuse: Refusal = () => undefined,
): Promise<LambdaServer> {
  const requests: { functionName: string; type: string | undefined; body: string }[] = []
  const running = new Set<Promise<void>>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += chunk
    const functionName = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/.exec(request.url ?? '')?.[1] ?? ''
    const type = request.headers['x-amz-invocation-type'] as string | undefined
    const refusal = refuse(requests.length)
    requests.push({ functionName, type, body })
    const send = (status: number, json: object, errorType?: string) => {
      response.writeHead(status, {
        'content-type': 'application/json',
        ...(errorType && { 'x-amzn-errortype': errorType }),
      })
      response.end(JSON.stringify(json))
    }
    const run = functions[functionName]
    if (refusal) return send(refusal.status, refusal.body, refusal.type)
    if (!run) return send(404, { Message: `Function not found: ${functionName}` }, 'ResourceNotFoundException')
    response.writeHead(202).end()
    const invocation = new Promise<void>((resolve) => setImmediate(resolve))
      .then(() => run(JSON.parse(body)))
      .catch(() => {}) // an error of an asynchronous invocation reaches nobody
      .finally(() => running.delete(invocation))
    running.add(invocation)
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async settled() {
      while (running.size > 0) await Promise.all(running)
    },
    close: () =>
      new Promise<void>((resolve, reject) => {
        server.close((e) => (e ? reject(e) : resolve()))
        server.closeAllConnections()
      }),
  }
}
