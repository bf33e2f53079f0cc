/** The embedded emulator ends like a database: what it works on is done first, and no client can make it throw. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEmulator } from '../../src/local/emulator.ts'
import { createTable } from '../../src/store/create-table.ts'
import { dynamoClient, dynamoTable } from '../../src/store/dynamo-table.ts'

// in a process that serves the books it would be the end of it
let uncaught: unknown[]
const note = (e: unknown) => uncaught.push(e)
let others: NodeJS.UncaughtExceptionListener[]
beforeEach(() => {
  uncaught = []
  others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', note)
})
afterEach(() => {
  process.removeAllListeners('uncaughtException')
  for (const listener of others) process.on('uncaughtException', listener)
})

const settled = () => new Promise((resolve) => setTimeout(resolve, 100))

test('is stopped in the middle of many writes: each is done or refused, none breaks in the middle', async () => {
  let done = 0
  for (let round = 0; round < 5; round++) {
    const emulator = await startEmulator(null)
    const client = dynamoClient({ endpoint: emulator.endpoint })
    await createTable(client, 'books')
    const table = dynamoTable(client, 'books')
    const writes = Array.from({ length: 60 }, (_, i) =>
      table.put({ item: { pk: 'p', sk: `s${i}`, big: 'x'.repeat(20_000) } }),
    )
    const ends = Promise.allSettled(writes)
    await Promise.race(writes)
    // the clients go away first, as a driver's do that is taken from its machine
    client.destroy()
    await emulator.stop()
    done += (await ends).filter((end) => end.status === 'fulfilled').length
  }
  await settled()
  expect(uncaught).toEqual([])
  expect(done).toBeGreaterThan(0)
})

test('outlives a client that is killed in the middle of a body', async () => {
  const emulator = await startEmulator(null)
  const port = Number(new URL(emulator.endpoint).port)
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{"TableName"')
  await settled()
  socket.resetAndDestroy()
  await settled()
  expect(uncaught).toEqual([])
  const client = dynamoClient({ endpoint: emulator.endpoint })
  await createTable(client, 'books')
  client.destroy()
  await emulator.stop()
})
