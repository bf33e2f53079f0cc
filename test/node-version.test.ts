import { expect, test } from 'vitest'

// The functions run on nodejs24.x; npm scripts bring that version along. A bin that is run directly may be on another.
test('the tests run on the version of Node that the functions run on', () => {
  expect(process.versions.node.split('.')[0]).toBe('24')
})
