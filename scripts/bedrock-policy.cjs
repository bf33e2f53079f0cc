// What the worker may call on Amazon Bedrock: the models that the team files name, and nothing where they name none. A
// model of a geography (`eu.`, `us.`, `global.` before its id) is an inference profile, which calls the model itself in
// any region of that geography: both must be allowed.
const PROVIDER = 'amazon-bedrock'
const GEOGRAPHY = /^(?:us|us-gov|eu|apac|jp|au|ca|global)\./
const ACTION = 'bedrock:InvokeModelWithResponseStream'

module.exports = async () => {
  const { createFolderTeams } = await import('../src/team/folder-teams.ts')
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const teams = createFolderTeams(process.env.SUBLEDGER_TEAMS || 'teams', { log })
  const named = new Set()
  for (const { name } of await teams.list()) {
    const team = await teams.get(name)
    for (const model of Object.values(team.models)) if (model.provider === PROVIDER) named.add(model.model)
  }
  return policyFor([...named].sort())
}

/** A policy of the worker's role. @param models ids or ARNs as the team files have them */
function policyFor(models) {
  if (models.length === 0) return { Ref: 'AWS::NoValue' }
  return {
    PolicyName: 'bedrock',
    PolicyDocument: { Version: '2012-10-17', Statement: models.flatMap(statements) },
  }
}

const allow = (resource, condition) => ({
  Effect: 'Allow',
  Action: ACTION,
  Resource: resource.startsWith('arn:') ? resource : { 'Fn::Sub': `arn:\${AWS::Partition}:bedrock:${resource}` },
  ...(condition && { Condition: condition }),
})

function statements(model) {
  if (model.startsWith('arn:')) {
    if (!model.includes('inference-profile/')) return [allow(model)]
    // which models are behind a profile of one's own is known to AWS alone: they may be called through it only
    return [allow(model), allow('*::foundation-model/*', { StringEquals: { 'bedrock:InferenceProfileArn': model } })]
  }
  if (!GEOGRAPHY.test(model)) return [allow(`*::foundation-model/${model}`)]
  return [
    allow(`*:\${AWS::AccountId}:inference-profile/${model}`),
    allow(`*::foundation-model/${model.replace(GEOGRAPHY, '')}`),
  ]
}

module.exports.policyFor = policyFor
