import { expect, test } from 'vitest'
import { plainJson } from '../../src/domain/text.ts'

test('JSON for logs and terminals holds no character that does something there, and is the same JSON', () => {
  const all = Array.from({ length: 0x10000 }, (_, i) => String.fromCharCode(i))
  const value = { 'key \u009b': ['', ...all, '😀', '\\\u0085', '\ud83d'], none: null }
  const text = plainJson(value)
  expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
  expect(JSON.parse(text)).toEqual(value)
  expect(text).toContain('"😀"')
  expect(text).toContain('"€"')
})
