/**
 * Who may use a deployed API where `auth` is iam, as the environment of its functions has it: the parameter
 * `iamPrincipals` (JSON), or all principals of the account that it is deployed to, for the tenant of the deployment.
 * Packaging ends here when the stage would let in everybody.
 */
const ALL = ['read', 'run', 'approve', 'admin']

module.exports = async ({ resolveVariable }) => {
  const [auth, stage, tenant, given] = await Promise.all(
    ['param:auth', 'sls:stage', 'param:tenant', 'param:iamPrincipals'].map((name) => resolveVariable(name)),
  )
  if (auth === 'none' && stage !== 'offline')
    throw new Error('The parameter auth is none: a deployed stage must know its callers, so it must be iam or oidc')
  if (auth !== 'iam') return ''
  if (given === '') {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation puts the account in
    return { 'Fn::Sub': JSON.stringify([{ principal: '${AWS::AccountId}', tenant, scopes: ALL }]) }
  }
  if (typeof given !== 'string') return JSON.stringify(given)
  try {
    return JSON.stringify(JSON.parse(given))
  } catch {
    throw new Error('The parameter iamPrincipals is not JSON')
  }
}
