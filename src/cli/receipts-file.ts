import { readFile } from 'node:fs/promises'
import { NotUtf8, readUtf8 } from '../domain/text.ts'
import { UsageError } from './io.ts'

/** A receipt as `POST /v1/runs/{runId}/receipts` takes it. */
export interface FileReceipt {
  readonly sessionId?: string
  readonly turn?: number
  readonly responseId?: string
  readonly model?: string
  readonly createdAt?: string
  readonly inputTokens: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  readonly cacheWrite1hTokens?: number
  readonly outputTokens: number
  readonly reasoningTokens?: number
}

const TEXTS = ['sessionId', 'responseId', 'model'] as const
const COUNTS = [
  'turn',
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
] as const
type Field = (typeof TEXTS)[number] | (typeof COUNTS)[number] | 'createdAt'

/** Names of columns and keys, without case, spaces, `_` and `-`. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, '')
const FIELDS = new Map<string, Field>([...TEXTS, ...COUNTS, 'createdAt' as const].map((f) => [plain(f), f]))

/**
 * Reads a provider's export: JSON (a list of objects, or an object with such a list under `receipts`), or CSV with a line of
 * titles. Columns that say nothing of a receipt are left alone; a row without tokens is none.
 * @throws UsageError with the row that is wrong
 */
export async function readReceipts(file: string): Promise<FileReceipt[]> {
  let text: string
  try {
    text = readUtf8(await readFile(file))
  } catch (e) {
    const reason = e instanceof NotUtf8 ? e.message : `cannot be read (${(e as NodeJS.ErrnoException).code})`
    throw new UsageError(`The file of receipts ${file} ${reason}.`)
  }
  return parseReceipts(text, file)
}

export function parseReceipts(text: string, file: string): FileReceipt[] {
  const rows = /^\s*[[{]/.test(text) ? jsonRows(text, file) : csvRows(text, file)
  const receipts = rows.flatMap((row, i) => toReceipt(row, `${file}, receipt ${i + 1}`))
  if (receipts.length === 0) throw new UsageError(`The file of receipts ${file} holds none.`)
  return receipts
}

type Row = ReadonlyMap<Field, unknown>

function jsonRows(text: string, file: string): Row[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (e) {
    throw new UsageError(`The file of receipts ${file} is not valid JSON: ${(e as Error).message}.`)
  }
  const list = Array.isArray(value) ? value : (value as { receipts?: unknown } | null)?.receipts
  if (!Array.isArray(list)) throw new UsageError(`The file of receipts ${file} holds no list of receipts.`)
  return list.map((row, i) => {
    if (typeof row !== 'object' || row === null || Array.isArray(row))
      throw new UsageError(`${file}, receipt ${i + 1}: it is no object.`)
    return fieldsOf(Object.entries(row))
  })
}

function csvRows(text: string, file: string): Row[] {
  const [titles, ...lines] = parseCsv(text, file)
  const names = titles ?? []
  for (const needed of ['inputTokens', 'outputTokens'] as const)
    if (!names.some((name) => plain(name) === plain(needed)))
      throw new UsageError(
        `The file of receipts ${file} has no column ${needed}; its columns are: ${names.join(', ')}.`,
      )
  return lines.map((cells) => fieldsOf(names.map((name, i) => [name, cells[i] === '' ? undefined : cells[i]])))
}

function fieldsOf(entries: readonly (readonly [string, unknown])[]): Row {
  const row = new Map<Field, unknown>()
  for (const [name, value] of entries) {
    const field = FIELDS.get(plain(name))
    if (field && value !== undefined && value !== null) row.set(field, value)
  }
  return row
}

function toReceipt(row: Row, where: string): FileReceipt[] {
  if (!row.has('inputTokens') && !row.has('outputTokens')) return []
  const receipt: { [field: string]: string | number } = { inputTokens: 0, outputTokens: 0 }
  for (const field of TEXTS) if (row.has(field)) receipt[field] = String(row.get(field))
  for (const field of COUNTS) {
    if (!row.has(field)) continue
    const value = row.get(field)
    if (!/^\d{1,10}$/.test(String(value)))
      throw new UsageError(`${where}: ${field} is "${String(value)}", and should be a whole number.`)
    receipt[field] = Number(value)
  }
  if (row.has('createdAt')) receipt.createdAt = timeOf(row.get('createdAt'), where)
  return [receipt as unknown as FileReceipt]
}

/** ISO 8601, or seconds or milliseconds since 1970, as providers have them. */
function timeOf(value: unknown, where: string): string {
  const text = String(value)
  const ms = /^\d{9,10}$/.test(text) ? Number(text) * 1000 : /^\d{12,13}$/.test(text) ? Number(text) : Date.parse(text)
  if (Number.isFinite(ms)) return new Date(ms).toISOString()
  throw new UsageError(`${where}: createdAt is "${text}", and should be a time as ISO 8601, or seconds since 1970.`)
}

/** RFC 4180: cells may be quoted, and a quoted one may hold commas, line breaks and doubled quotes. */
function parseCsv(text: string, file: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length) {
    let cell = ''
    if (text[at] === '"') {
      for (at++; ; at++) {
        const end = text.indexOf('"', at)
        if (end < 0) throw new UsageError(`${file}: a quoted cell has no end.`)
        cell += text.slice(at, end)
        at = end + 1
        if (text[at] !== '"') break
        cell += '"'
      }
    } else {
      const end = text.slice(at).search(/[,\r\n]/)
      cell = end < 0 ? text.slice(at) : text.slice(at, at + end)
      at += cell.length
    }
    row.push(cell.trim())
    if (text[at] === ',') {
      at++
      if (at < text.length && text[at] !== '\r' && text[at] !== '\n') continue
      row.push('')
    }
    if (at < text.length && text[at] !== '\r' && text[at] !== '\n')
      throw new UsageError(`${file}, row ${rows.length + 1}: a comma or a line end must follow a quoted cell.`)
    if (text.startsWith('\r\n', at)) at += 2
    else at++
    if (row.some((c) => c !== '')) rows.push(row)
    row = []
  }
  return rows
}
