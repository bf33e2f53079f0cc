import { defineConfig } from 'vitest/config'

// Projects by what a test needs: `default` needs only npm packages, `dynamodb-local` needs AWS's DynamoDB Local
// (started by scripts/dynamodb-local.ts, which sets SUBLEDGER_TEST_DYNAMODB to its address).
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'default',
          include: ['test/**/*.test.ts'],
          exclude: ['test/browser/**'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'dynamodb-local',
          include: ['test/store/**/*.test.ts', 'test/engine/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
    maxWorkers: 2,
  },
})
