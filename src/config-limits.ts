import { DEFAULT_LIMITS, type Limits } from './domain/configured-limits.ts'

type Env = { readonly [name: string]: string | undefined }

/** Each variable, and the most that the table and the platform can take. */
const VARIABLES: { readonly [L in keyof Limits]: readonly [variable: string, least: number, most: number] } = {
  bodyBytes: ['SUBLEDGER_MAX_BODY_BYTES', 1_000, DEFAULT_LIMITS.bodyBytes],
  depth: ['SUBLEDGER_MAX_DEPTH', 0, 50],
  // a header with more pending children would outgrow one write unit
  width: ['SUBLEDGER_MAX_WIDTH', 1, DEFAULT_LIMITS.width],
  turns: ['SUBLEDGER_MAX_TURNS', 1, 100_000],
  // a root of at most 100 groups of 100
  tasks: ['SUBLEDGER_MAX_TASKS', 1, DEFAULT_LIMITS.tasks],
  concurrency: ['SUBLEDGER_MAX_CONCURRENCY', 1, DEFAULT_LIMITS.concurrency],
  polls: ['SUBLEDGER_MAX_POLLS', 0, 1_000],
  tenantConcurrency: ['SUBLEDGER_TENANT_CONCURRENCY', 1, 1_000_000],
}

/**
 * The limits of this deployment.
 * @throws Error with the variable's name and what it should be
 */
export function readLimits(env: Env): Limits {
  const limits: { -readonly [L in keyof Limits]: number } = { ...DEFAULT_LIMITS }
  for (const [limit, [variable, least, most]] of Object.entries(VARIABLES)) {
    const text = env[variable]
    if (text === undefined || text === '') continue
    const value = Number(text)
    if (!/^\d{1,7}$/.test(text) || value < least || value > most)
      throw new Error(`${variable} is "${text}": it must be a whole number from ${least} to ${most}`)
    limits[limit as keyof Limits] = value
  }
  return limits
}
