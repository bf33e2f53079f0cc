import { readFile } from 'node:fs/promises'
import { inflateRawSync } from 'node:zlib'

const END = 0x06054b50
const ENTRY = 0x02014b50
const DEFLATED = 8

export interface ZipEntry {
  readonly name: string
  /** bytes of the file itself */
  readonly size: number
  text(): string
}

/** The files of a zip, by its central directory. Knows what packagers write: stored or deflated, no zip64. */
export async function readZip(file: string): Promise<readonly ZipEntry[]> {
  const zip = await readFile(file)
  const end = zip.lastIndexOf(Buffer.from(Uint32Array.of(END).buffer))
  if (end < 0) throw new Error(`${file} is not a zip`)
  const entries: ZipEntry[] = []
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (zip.readUInt32LE(at) !== ENTRY) throw new Error(`${file} has no directory entry at ${at}`)
    const method = zip.readUInt16LE(at + 10)
    const packed = zip.readUInt32LE(at + 20)
    const nameLength = zip.readUInt16LE(at + 28)
    const header = zip.readUInt32LE(at + 42)
    const begin = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28)
    entries.push({
      name: zip.toString('utf8', at + 46, at + 46 + nameLength),
      size: zip.readUInt32LE(at + 24),
      text() {
        const body = zip.subarray(begin, begin + packed)
        return (method === DEFLATED ? inflateRawSync(body) : body).toString('utf8')
      },
    })
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return entries.filter((entry) => !entry.name.endsWith('/'))
}
