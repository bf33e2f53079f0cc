/** A handler that goes wrong in the way its event names, for the tests of the offline runtime. */
export async function handler({ how }, context) {
  if (how === 'throw') throw new Error('thrown')
  if (how === 'unhandled rejection') Promise.reject(new Error('rejected'))
  if (how === 'exception in a timer') setTimeout(() => JSON.parse('{'))
  if (how === 'exit') process.exit(3)
  if (how === 'nothing') return { requestId: context.awsRequestId }
  return new Promise(() => {}) // the invocation would never end by itself
}
