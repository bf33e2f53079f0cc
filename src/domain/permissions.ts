/** What a team file permits its agents to call: docker-agent's `permissions`, with patterns of tool names and arguments. */
export interface Permissions {
  readonly allow?: readonly string[]
  readonly ask?: readonly string[]
  readonly deny?: readonly string[]
}

export type Permission = 'allow' | 'ask' | 'deny'

/** One pattern, taken apart: the tool's name, and what arguments must be. `*` is any text, `?` any character. */
export interface Pattern {
  readonly tool: string
  readonly args: readonly (readonly [name: string, value: string])[]
}

/** `transfer_task:agent=writer*`: what has a `=` is an argument, what has none belongs to the name (`mcp:github:get_*`). */
export function parsePattern(text: string): Pattern {
  const parts = text.split(':')
  const first = parts.findIndex((part, i) => i > 0 && /^\w+=/.test(part))
  if (first < 0) return { tool: text, args: [] }
  const args: [string, string][] = []
  for (const part of parts.slice(first)) {
    const at = part.indexOf('=')
    // a value may have colons
    if (/^\w+=/.test(part)) args.push([part.slice(0, at), part.slice(at + 1)])
    else args.at(-1)![1] += `:${part}`
  }
  return { tool: parts.slice(0, first).join(':'), args }
}

/**
 * What becomes of a tool call. Deny goes before ask, and ask before allow; a call that no pattern names is allowed, since
 * the tools here have no effects outside.
 */
export function permissionOf(
  permissions: Permissions | undefined,
  tool: string,
  args: { readonly [name: string]: unknown },
): Permission {
  const named = (patterns: readonly string[] = []) => patterns.some((p) => fits(parsePattern(p), tool, args))
  if (named(permissions?.deny)) return 'deny'
  return named(permissions?.ask) ? 'ask' : 'allow'
}

const fits = (pattern: Pattern, tool: string, args: { readonly [name: string]: unknown }): boolean =>
  matches(pattern.tool, tool) &&
  pattern.args.every(([name, value]) => {
    const given = Object.hasOwn(args, name) ? args[name] : undefined
    return given !== undefined && matches(value, typeof given === 'string' ? given : JSON.stringify(given))
  })

/** Whether a text is of a form. Step by step and never back by more than one star, so that no text makes it slow. */
export function matches(form: string, text: string): boolean {
  let [f, t, star, from] = [0, 0, -1, 0]
  while (t < text.length) {
    if (form[f] === '*') {
      star = f++
      from = t
    } else if (f < form.length && (form[f] === '?' || form[f] === text[t])) {
      f++
      t++
    } else if (star >= 0) {
      f = star + 1
      t = ++from
    } else return false
  }
  while (form[f] === '*') f++
  return f === form.length
}
