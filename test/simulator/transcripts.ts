/** Whether conversations are well formed: in what is sent to a model, and in what the log says. */
import type { Message } from '../../src/domain/turn.ts'
import type { Log, Mirror } from './mirror.ts'

/**
 * Begins with the user; each tool call has exactly one result, in order, before anybody speaks again. Two questions may
 * follow each other: a round that ended without an answer leaves one, and providers take it.
 */
export function conversationFault(messages: readonly Message[]): string | undefined {
  if (messages[0]?.role !== 'user') return 'it does not begin with the user'
  let open: string[] = []
  for (const [i, m] of messages.entries()) {
    if (m.role === 'tool') {
      const next = open.shift()
      if (next === undefined) return `message ${i} is a result of no call`
      if (next !== m.toolCallId) return `message ${i} is the result of ${m.toolCallId}, ${next} is next`
      continue
    }
    if (open.length > 0) return `message ${i} comes before the results of ${open.join(', ')}`
    const before = messages[i - 1]
    if (m.role === 'assistant') {
      if (before?.role === 'assistant') return `message ${i} is a second answer`
      open = m.toolCalls.map((c) => c.id)
    }
  }
  if (open.length > 0) return `it ends without the results of ${open.join(', ')}`
  return messages.at(-1)?.role === 'assistant' ? 'it ends with an answer' : undefined
}

/** The last answer before request n wants results: whether they stand where they should, once. */
export function resultsMissingFor(log: Log, n: number): string | undefined {
  for (let m = n - 1; m >= 0; m--) {
    const answer = log.responses.get(m)
    if (answer?.outcome !== 'accepted') continue
    const results = [...(answer.results ?? [])]
    for (let k = m + 1; k <= n; k++) {
      for (const message of log.requests.get(k)?.messages ?? []) if (message.role === 'tool') results.push(message)
    }
    const [want, have] = [answer.message!.toolCalls.map((c) => c.id), results.map((r) => r.toolCallId)]
    if (want.join() === have.join()) return undefined
    return `answer ${m} wants results of ${want.join(', ') || 'nothing'} and there are ${have.join(', ') || 'none'}`
  }
  return undefined
}

/** The whole log of an ended session: its conversation, and durable tool results that stand in it as they are. */
export function sessionFault(mirror: Mirror, s: string): string | undefined {
  const h = mirror.headers.get(s)!
  const { requests, responses, results } = mirror.log(s)
  const last = Math.max(-1, ...requests.keys(), ...responses.keys())
  const messages: Message[] = []
  const contents = new Map<string, string>()
  for (let n = 0; n <= last; n++) {
    messages.push(...(requests.get(n)?.messages ?? []))
    const r = responses.get(n)
    if (!requests.has(n) && !r) return `slot ${n} is missing`
    if (r?.outcome !== 'accepted' || !r.message) continue
    messages.push(r.message, ...(r.results ?? []))
    const next =
      r.results ??
      [...requests]
        .filter(([k]) => k > n)
        .sort(([a], [b]) => a - b)
        .find(([, q]) => q.messages.length > 0)?.[1].messages
    for (const [i, call] of r.message.toolCalls.entries()) {
      const there = next?.find((m) => m.role === 'tool' && m.toolCallId === call.id)
      if (there) contents.set(`${n}#${i}`, there.content)
    }
  }
  for (const [key, result] of results) {
    const content = contents.get(key)
    const ended = content?.startsWith('There is no result: the round ended')
    if (content !== undefined && !ended && content !== result.content) {
      return `result ${key} is "${result.content}", the transcript says "${content}"`
    }
  }
  // what an unfinished conversation still lacks is put when it goes on
  const whole = messages.findLastIndex((m) => m.role === 'assistant')
  const sent = h.first ? [{ role: 'user' as const, content: 'the task' }, ...messages] : messages
  const until = sent.slice(0, whole + (h.first ? 1 : 0))
  return until.length > 0 && whole >= 0 ? conversationFault(until) : undefined
}
