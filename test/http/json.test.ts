/** The parser takes exactly what JSON.parse takes, but for duplicate keys, `__proto__` and depth. */
import { describe, expect, test } from 'vitest'
import { MAX_JSON_DEPTH, parseJson } from '../../src/http/json.ts'

const SAMPLES = [
  '{"a": [1, -0, 0.5, 1e3, 1E-2, -12.25e+2, 123456789012345678901234567890], "b": {"c": null}, "long key": ""}',
  '[true, false, null, "", "\\u00e9\\ud83d\\ude42 \\" \\\\ \\/ \\b\\f\\n\\r\\t", "é🙂 \u2028"]',
  ' \t\r\n {"nested": [[[]], {"x": {"y": {}}}]} \n',
  '"text"',
  '-7',
  'null',
]

const parsed = (parse: (text: string) => unknown, text: string): { value: unknown } | 'refused' => {
  try {
    return { value: parse(text) }
  } catch {
    return 'refused'
  }
}

describe('parseJson', () => {
  test.each(SAMPLES)('reads what JSON.parse reads: %s', (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  test('takes and refuses what JSON.parse does, with any one character gone, doubled or in place of another', () => {
    const disagree: string[] = []
    let refused = 0
    for (const sample of SAMPLES) {
      for (let i = 0; i < sample.length; i++) {
        const [before, c, after] = [sample.slice(0, i), sample[i]!, sample.slice(i + 1)]
        const others = [...'"\\,:[]{}-+.e01tn\u0007 '].map((o) => before + o + after)
        for (const text of [before + after, before + c + c + after, ...others]) {
          const [ours, theirs] = [parsed(parseJson, text), parsed(JSON.parse, text)]
          if (theirs === 'refused') refused++
          if (JSON.stringify(ours) !== JSON.stringify(theirs)) disagree.push(text)
        }
      }
    }
    expect(disagree).toEqual([])
    expect(refused).toBeGreaterThan(1_000)
  })

  test('keeps keys that every object has as keys like any others', () => {
    const value = parseJson('{"constructor": 1, "toString": 2, "hasOwnProperty": 3}') as object
    expect(Object.keys(value)).toEqual(['constructor', 'toString', 'hasOwnProperty'])
  })

  test('goes to a bounded depth and no further', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(parsed(parseJson, nested(MAX_JSON_DEPTH))).not.toBe('refused')
    expect(parsed(parseJson, nested(MAX_JSON_DEPTH + 1))).toBe('refused')
  })
})
