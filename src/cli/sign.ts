/** Requests signed for API Gateway with the credentials that the AWS SDK finds: environment, profile, SSO, role. */
import { Sha256 } from '@aws-crypto/sha256-js'
import { defaultProvider } from '@aws-sdk/credential-provider-node'
import { SignatureV4 } from '@smithy/signature-v4'
import { type Io, UsageError } from './io.ts'

export interface SigningOptions {
  readonly url: string
  readonly env: Io['env']
  /** where keys come from; the SDK's own chain unless told */
  readonly credentials?: ReturnType<typeof defaultProvider>
}

const SERVICE = 'execute-api'
/** `https://abc.execute-api.eu-central-1.amazonaws.com` says where it is; an own domain does not. */
const GATEWAY = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$/

/**
 * @returns a function that signs a request (SigV4, service execute-api), its body included
 * @throws UsageError where nobody says which region it is
 */
export function requestSigner(options: SigningOptions): (request: Request) => Promise<Request> {
  const { hostname } = new URL(options.url)
  const region = GATEWAY.exec(hostname)?.[1] ?? (options.env.AWS_REGION || options.env.AWS_DEFAULT_REGION)
  if (!region)
    throw new UsageError(
      `"${hostname}" does not say in which region it is: set AWS_REGION, which --auth iam signs for.`,
    )
  if (!/^[a-z0-9-]+$/.test(region)) throw new UsageError('AWS_REGION is no region, such as eu-central-1.')
  const credentials = options.credentials ?? defaultProvider()
  const signer = new SignatureV4({
    service: SERVICE,
    region,
    credentials: async () => sendable(await credentials()),
    sha256: Sha256,
  })
  return async (request) => {
    const url = new URL(request.url)
    const body = await request.text()
    const signed = await signer.sign({
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port && { port: Number(url.port) }),
      path: url.pathname,
      query: queryOf(url),
      headers: { ...Object.fromEntries(request.headers), host: url.host },
      ...(body !== '' && { body }),
    })
    // fetch sets host itself, to the same value
    const { host: _, ...headers } = signed.headers
    return new Request(request.url, { method: request.method, headers, ...(body !== '' && { body }) })
  }
}

/** What a header does not take is refused here, where nothing repeats it. */
function sendable<T extends { readonly accessKeyId: string; readonly sessionToken?: string }>(keys: T): T {
  const names = { accessKeyId: 'access key id (AWS_ACCESS_KEY_ID)', sessionToken: 'session token (AWS_SESSION_TOKEN)' }
  for (const name of ['accessKeyId', 'sessionToken'] as const)
    if (/[^\x20-\x7e]/.test(keys[name] ?? ''))
      throw new UsageError(
        `The ${names[name]} of the AWS credentials has line breaks or characters that are not ASCII. It is not sent.`,
      )
  return keys
}

function queryOf(url: URL): { [name: string]: string[] } {
  const query: { [name: string]: string[] } = {}
  for (const [name, value] of url.searchParams) {
    query[name] ??= []
    query[name].push(value)
  }
  return query
}
