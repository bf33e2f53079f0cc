import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { outputCap } from '../domain/output-caps.ts'
import type { ModelDefinition } from '../domain/team.ts'
import type { ModelFailure, ModelRequest, ModelResult } from '../ports.ts'
import {
  type Answer,
  finishReason,
  isCapped,
  promisesMore,
  readAnswer,
  wholeAnswer,
  withExactCalls,
  withOwnIds,
} from './answer.ts'
import { type AwsCredentials, awsCredentials, type CredentialsOf } from './aws-credentials.ts'
import { callOptions } from './call-options.ts'
import { type Endpoint, endpointOf } from './endpoint.ts'
import { brokenOff, type Classified, classify, cleanText } from './failure.ts'
import { hearBeginning } from './hear.ts'
import { type Heard, newHeard } from './heard.ts'
import { loadModel, speakerOf } from './packages.ts'
import { bookRefused, bookUsage, estimateInput } from './usage.ts'
import { listeningFetch } from './wire.ts'

export interface ProviderDeps {
  readonly env: (name: string) => string | undefined
  readonly fetch: typeof globalThis.fetch
  /** left out: the chain of the AWS SDK */
  readonly awsCredentials?: CredentialsOf | undefined
  /** epoch ms */
  readonly now: () => number
}

/** One call to a provider over HTTP. What came of it is a value, also when nothing came. */
export async function callProvider(request: ModelRequest, deps: ProviderDeps): Promise<ModelResult> {
  const { definition, signal } = request
  const endpoint = endpointOf(definition, deps.env)
  if ('failure' in endpoint) return failed({ failure: endpoint.failure, free: true }, request, newHeard())
  const secrets = endpoint.key === undefined ? [] : [endpoint.key]
  const heard = newHeard()
  if (signal.aborted) return failed({ failure: brokenOff(signal), free: true }, request, heard)

  // a controller of its own, so that whatever ends the call lets go of the connection
  const connection = new AbortController()
  const signs = endpoint.region !== undefined && endpoint.key === undefined
  const anonymous = endpoint.key === undefined && !signs
  const fetch = listeningFetch({ api: definition.api, heard, fetch: deps.fetch, anonymous })
  try {
    const answer = await unlessAborted(signal, async () => {
      const aws = signs ? await credentialsOf(definition, deps.awsCredentials ?? awsCredentials) : undefined
      if (aws) secrets.push(aws.secretAccessKey, aws.accessKeyId, ...(aws.sessionToken ? [aws.sessionToken] : []))
      return speak(request, endpoint, { fetch, heard, aws, signal: connection.signal })
    })
    if (isWhole(answer, heard)) return accepted(answer, request, heard)
    connection.abort()
    return failed(classify(answer.unreadable, heard, deps.now(), secrets), request, heard)
  } catch (error) {
    connection.abort()
    if (error instanceof NoCredentials)
      return failed(
        { failure: { class: 'auth', message: cleanText(error.message, secrets) }, free: true },
        request,
        heard,
      )
    // free where it was broken off before a request had left
    const why = signal.aborted
      ? { failure: brokenOff(signal), free: !heard.sent }
      : classify(error, heard, deps.now(), secrets)
    return failed(why, request, heard)
  }
}

interface Speaking {
  readonly fetch: typeof globalThis.fetch
  readonly heard: Heard
  readonly aws: AwsCredentials | undefined
  readonly signal: AbortSignal
}

async function speak(request: ModelRequest, endpoint: Endpoint, s: Speaking): Promise<Answer> {
  const { definition } = request
  const speaker = speakerOf(definition, endpoint)
  const model = await loadModel(speaker, definition, endpoint, s.fetch, s.aws)
  const options = callOptions(speaker, request, endpoint.own, s.signal)
  // `provider_opts.stream: false` is for endpoints that cannot stream
  if (definition.options?.stream === false) return wholeAnswer(await model.doGenerate(options))
  return streamed(model, options, s.heard)
}

/** A server may answer with one document though a stream was asked for: then that is read, without a second request. */
async function streamed(model: LanguageModelV4, options: LanguageModelV4CallOptions, heard: Heard): Promise<Answer> {
  try {
    const { stream } = await model.doStream(options)
    const answer = await readAnswer(stream)
    if (heard.document === undefined) return answer
  } catch (error) {
    if (heard.document === undefined) throw error
  }
  return wholeAnswer(await model.doGenerate(options))
}

class NoCredentials extends Error {}

async function credentialsOf(definition: ModelDefinition, find: CredentialsOf): Promise<AwsCredentials> {
  try {
    return await find()
  } catch (e) {
    const why = e instanceof Error ? e.message : String(e)
    throw new NoCredentials(`There are no AWS credentials for model ${definition.model}: ${why}`)
  }
}

/**
 * Whether the answer has all that the provider said. An event that the package could not read does no harm where it
 * carried nothing of the answer, such as a usage object of a shape that it does not know. An answer without the calls that
 * were said or promised is not whole: taken for one, it would end the session with nothing.
 */
function isWhole(answer: Answer, heard: Heard): boolean {
  if (heard.error || heard.finish === undefined || heard.finish === 'error') return false
  const { content, reasoning, toolCalls } = answer.message
  if (toolCalls.length < heard.toolCalls.size && !isCapped(heard.finish)) return false
  if (toolCalls.length === 0 && promisesMore(heard.finish)) return false
  const empty = content === '' && !reasoning?.length && toolCalls.length === 0
  // reasoning that its package does not know may be all that a capped answer has
  const told = heard.outputBytes > 0 && !heard.refused && !isCapped(heard.finish)
  const came = answer.unreadable !== undefined || heard.unreadable > 0 || told
  if (empty && came) return false
  return answer.unreadable === undefined || (heard.unreadable === 0 && answer.bytes >= heard.outputBytes)
}

function accepted(answer: Answer, request: ModelRequest, heard: Heard): ModelResult {
  const message = withOwnIds(withExactCalls(answer.message, heard.calls), request.messages, heard.callIds)
  return {
    message,
    finishReason: finishReason(heard, message.toolCalls.length),
    ...bookUsage(request.definition.api, heard, estimateInput(request), true),
    ...identity(request, heard),
  }
}

function failed({ failure, free }: Classified, request: ModelRequest, heard: Heard): ModelResult {
  if (heard.begun !== undefined) hearBeginning(heard, heard.begun)
  const { api } = request.definition
  const booked = free ? bookRefused(api, heard) : bookUsage(api, heard, estimateInput(request), false)
  return { finishReason: 'error', ...booked, ...identity(request, heard), failure: withAdvice(failure, request) }
}

/** A model that refuses the cap it was asked for is one that the list of small models does not know. */
function withAdvice(failure: ModelFailure, { definition, maxOutputTokens }: ModelRequest): ModelFailure {
  const { message } = failure
  const refused = failure.class === 'invalid_request' && /max\w*[ _]?tokens|maximum (?:context|output)/i.test(message)
  if (!refused || definition.maxTokens !== undefined) return failure
  const cap = maxOutputTokens ?? outputCap(definition)
  return { ...failure, message: cleanText(`Give the model a lower max_tokens than ${cap}. ${message}`, []) }
}

const identity = (request: ModelRequest, { responseId, answeredBy }: Heard) => ({
  ...(responseId !== undefined && { responseId }),
  ...(answeredBy !== undefined && answeredBy !== request.definition.model && { answeredBy }),
})

/** Ends with the work, or at once when the signal aborts, whether the work minds the signal or not. */
function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', onAbort))
  })
}
