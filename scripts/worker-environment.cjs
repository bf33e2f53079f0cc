// Environment of the worker alone: the keys of model providers. `--param providerKeys=OPENAI_API_KEY=my/secret` puts a
// reference to the secret `my/secret` into the template; CloudFormation resolves it when it deploys. A key itself is
// never in a template, and no other function sees one.
const NAME = /^[A-Z][A-Z0-9_]{0,63}$/
const SECRET = /^[A-Za-z0-9/_+=.@-]{1,512}$/

module.exports = async ({ resolveVariable }) => {
  const given = String((await resolveVariable('param:providerKeys')) ?? '')
  const pairs = given.split(',').map((pair) => pair.trim())
  return Object.fromEntries(pairs.filter(Boolean).map(reference))
}

function reference(pair) {
  const at = pair.indexOf('=')
  const name = pair.slice(0, at)
  const secret = pair.slice(at + 1)
  if (at < 0 || !NAME.test(name) || /^(AWS|SUBLEDGER)_/.test(name) || !SECRET.test(secret))
    throw new Error(`providerKeys: an entry is not VARIABLE=secret-name; AWS_* and SUBLEDGER_* are not for keys`)
  return [name, `{{resolve:secretsmanager:${secret}}}`]
}
