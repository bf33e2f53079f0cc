import { SubledgerError } from '../domain/errors.ts'
import type { Route } from './api.ts'

/** Routes of the API that this version does not have: they say so, so that nobody takes a 404 for a missing run. */
const NOT_THERE: readonly [path: string, methods: readonly string[], what: string][] = [
  ['/v1/runs/:runId/approvals/:approvalId', ['POST'], 'Approving tool calls'],
]

export const notThereRoutes: readonly Route[] = NOT_THERE.map(([path, methods, what]) => ({
  path,
  methods: Object.fromEntries(
    methods.map((method) => [
      method,
      () => {
        throw new SubledgerError('not_supported', `${what} is not supported by this version.`)
      },
    ]),
  ),
}))
