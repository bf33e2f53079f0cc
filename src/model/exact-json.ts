/**
 * JSON whose numbers keep their text. `JSON.parse` makes doubles of them: 9007199254740993 would come back as another
 * number, and 1.0 as 1. Arguments of tool calls are the model's own words, so they go through here where a provider or
 * its package takes objects instead of text.
 */

/** `JSON.rawJSON` and the source of a value are in Node 24, and not yet in TypeScript's library. */
const json = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
  rawJSON(text: string): unknown
}

/**
 * A value that `JSON.stringify` turns into the same numbers. Not to be calculated with: numbers that are no doubles stand
 * in it as opaque objects.
 * @throws SyntaxError where the text is no JSON
 */
export const parseExact = (text: string): unknown =>
  json.parse(text, (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? json.rawJSON(source) : value,
  )
