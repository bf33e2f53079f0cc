import type { ModelRequest, ModelResult } from '../ports.ts'
import { type Answer, finishReason, readAnswer } from './answer.ts'
import { endpointOf } from './endpoint.ts'
import { brokenOff, type Classified, classify } from './failure.ts'
import { type Heard, newHeard } from './heard.ts'
import { callOptions, loadModel, speakerOf } from './packages.ts'
import { bookUsage, estimateInput, FREE } from './usage.ts'
import { listeningFetch } from './wire.ts'

export interface ProviderDeps {
  readonly env: (name: string) => string | undefined
  readonly fetch: typeof globalThis.fetch
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
  const fetch = listeningFetch(definition.api, heard, deps.fetch, endpoint.key)
  try {
    const answer = await unlessAborted(signal, async () => {
      const speaker = speakerOf(definition, endpoint)
      const model = await loadModel(speaker, definition, endpoint, fetch)
      const { stream } = await model.doStream(callOptions(speaker, request, endpoint.own, connection.signal))
      return readAnswer(stream)
    })
    if (isWhole(answer, heard)) return accepted(answer, request, heard)
    connection.abort()
    return failed(classify(answer.unreadable, heard, deps.now(), secrets), request, heard)
  } catch (error) {
    connection.abort()
    // free where it was broken off before a request had left
    const why = signal.aborted
      ? { failure: brokenOff(signal), free: !heard.sent }
      : classify(error, heard, deps.now(), secrets)
    return failed(why, request, heard)
  }
}

/**
 * Whether the answer has all that the provider said. An event that the package could not read does no harm where it
 * carried nothing of the answer, such as a usage object of a shape that it does not know.
 */
function isWhole(answer: Answer, heard: Heard): boolean {
  if (heard.error || heard.finish === undefined || heard.finish === 'error') return false
  return answer.unreadable === undefined || (heard.unreadable === 0 && answer.bytes >= heard.outputBytes)
}

function accepted(answer: Answer, request: ModelRequest, heard: Heard): ModelResult {
  return {
    message: answer.message,
    finishReason: finishReason(heard, answer.message.toolCalls.length),
    ...bookUsage(request.definition.api, heard, estimateInput(request), true),
    ...identity(request, heard),
  }
}

function failed({ failure, free }: Classified, request: ModelRequest, heard: Heard): ModelResult {
  const booked = free ? FREE : bookUsage(request.definition.api, heard, estimateInput(request), false)
  return { finishReason: 'error', ...booked, ...identity(request, heard), failure }
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
