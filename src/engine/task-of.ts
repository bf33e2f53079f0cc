import { FIRST_INPUT_REF, type Run } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { Store } from '../ports.ts'

/** What a session was asked to do. */
export interface Task {
  readonly task: string
  readonly expectedOutput?: string
}

/**
 * Reads a session's task from where it stands: the input of the run, or the call of its parent's answer. A task is
 * stored once, where it was written. Undefined: a session without a model, or the text is gone.
 */
export async function taskOf(
  store: Pick<Store, 'getInput' | 'getTask' | 'getResponse'>,
  run: Run,
  header: SessionHeader,
): Promise<Task | undefined> {
  if (header.agent === null) return undefined
  if (header.via.turn === null) {
    // a list's tasks and the root's first task stand in the input of round 1; later inputs stand in the log
    if (run.tasks !== null) return store.getTask(run, 1, FIRST_INPUT_REF, header.via.index)
    const input = await store.getInput(run, 1, FIRST_INPUT_REF)
    return input && 'input' in input ? { task: input.input } : undefined
  }
  const answer = await store.getResponse({ ...run, sessionId: header.parentId! }, header.via.turn)
  return delegatedTask(answer?.message?.toolCalls[header.via.index]?.arguments)
}

/** The task in the arguments of a delegating tool call. */
export function delegatedTask(argumentsText: string | undefined): Task | undefined {
  if (argumentsText === undefined) return undefined
  const args = JSON.parse(argumentsText) as { task?: unknown; expected_output?: unknown }
  if (typeof args.task !== 'string') return undefined
  return {
    task: args.task,
    ...(typeof args.expected_output === 'string' &&
      args.expected_output !== '' && { expectedOutput: args.expected_output }),
  }
}

/** The task as the session's model reads it: its first user message. */
export const taskMessage = (t: Task): string =>
  t.expectedOutput ? `${t.task}\n\nExpected output: ${t.expectedOutput}` : t.task
