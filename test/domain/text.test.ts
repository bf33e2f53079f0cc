import { describe, expect, test } from 'vitest'
import { NotUtf8, plainJson, readUtf8 } from '../../src/domain/text.ts'

test('JSON for logs and terminals holds no character that does something there, and is the same JSON', () => {
  const all = Array.from({ length: 0x10000 }, (_, i) => String.fromCharCode(i))
  const value = { 'key \u009b': ['', ...all, '😀', '\\\u0085', '\ud83d'], none: null }
  const text = plainJson(value)
  expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
  expect(JSON.parse(text)).toEqual(value)
  expect(text).toContain('"😀"')
  expect(text).toContain('"€"')
})

describe('the text of a file', () => {
  const bytes = (...parts: (string | number)[]) =>
    Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(p) : Buffer.from([p]))))

  test('is without its byte order mark, and has all else', () => {
    expect(readUtf8(bytes('\ufeffgrün 😀 \ufeff\ufffd\u0000'))).toBe('grün 😀 \ufeff\ufffd\u0000')
    expect(readUtf8(bytes())).toBe('')
  })

  test.each([
    [0, bytes(0xff)],
    [0, bytes(0xef, 0xbf)],
    [0, bytes(0xef, 0xbf, 'a')],
    [3, bytes('abc', 0xc3)],
    [3, bytes('abc', 0xc3, '(')],
    [8, bytes('\ufeff', 'grün', 0xfc, 'n')],
    [4, bytes('😀', 0xf0, 0x9f, 0x98)],
    [2, bytes('ab', 0xed, 0xa0, 0x80, 'c')],
    [100_002, bytes('a'.repeat(100_000), 'ü', 0x80, 'b'.repeat(50_000), 0xff)],
  ])('that is no UTF-8 from byte %d on is refused', (offset, text) => {
    expect(() => readUtf8(text)).toThrow(new NotUtf8(offset))
  })
})
