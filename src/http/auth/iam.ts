import { isPrincipal } from '../../domain/approval.ts'
import { SubledgerError } from '../../domain/errors.ts'
import type { Caller, Identify } from './caller.ts'
import type { IamPrincipal, IamSettings } from './settings.ts'

/** What a principal is as IAM names it: the session of an assumed role is the role, wherever its path. */
interface Principal {
  readonly account: string
  /** `user/path/name`, `role/name`, `root` */
  readonly name: string
}

const ARN = /^arn:[a-z-]+:(iam|sts)::(\d{12}):(.+)$/
export const ACCOUNT = /^\d{12}$/

/**
 * Callers by the principal that API Gateway found behind the signature; its event is the only place that has it. A route
 * that has lost its authorizer has no principal, and is shut.
 */
export function iamCallers(settings: IamSettings): Identify {
  const rules = settings.principals.map((p) => ({ fits: matcher(p.principal), caller: callerOf(p) }))
  return (_request, env) => {
    const arn = userArn(env)
    if (arn === undefined)
      throw new SubledgerError('unauthorized', 'Sign the request with AWS credentials (SigV4, service execute-api).')
    const principal = isPrincipal(arn) ? parseArn(arn) : undefined
    const rule = principal && rules.find((r) => r.fits(principal))
    if (!rule) throw new SubledgerError('forbidden', 'This AWS principal belongs to no tenant of this deployment.')
    return { ...rule.caller, name: arn }
  }
}

const callerOf = (p: IamPrincipal): Omit<Caller, 'name'> => ({ tenant: p.tenant, scopes: new Set(p.scopes) })

function userArn(env: unknown): string | undefined {
  const context = (env as { event?: { requestContext?: { authorizer?: { iam?: { userArn?: unknown } } } } } | undefined)
    ?.event?.requestContext
  const arn = context?.authorizer?.iam?.userArn
  return typeof arn === 'string' ? arn : undefined
}

function parseArn(arn: string): Principal | undefined {
  const [, service, account = '', resource = ''] = ARN.exec(arn) ?? []
  if (service === undefined) return undefined
  const assumed = /^assumed-role\/([^/]+)\/[^/]+$/.exec(resource)
  if (service === 'sts') return assumed ? { account, name: `role/${assumed[1]}` } : { account, name: resource }
  return { account, name: resource }
}

/** @throws Error when it is neither an account id nor an ARN of a role or user */
export function matcher(pattern: string): (principal: Principal) => boolean {
  if (ACCOUNT.test(pattern)) return (p) => p.account === pattern
  const [, , account, resource] = ARN.exec(pattern) ?? []
  const [, kind, path] = /^(role|user)\/([\w+=,.@*/-]+)$/.exec(resource ?? '') ?? []
  if (!pattern.includes(':iam::') || account === undefined || kind === undefined || path === undefined)
    throw new Error(
      `"${pattern}" is neither an account id of 12 digits nor an ARN such as arn:aws:iam::123456789012:role/ops-*`,
    )
  // the ARN of an assumed role's session leaves the role's path out
  const name = `${kind}/${kind === 'role' ? path.slice(path.lastIndexOf('/') + 1) : path}`
  const shape = new RegExp(`^${name.replace(/[.+]/g, '\\$&').replaceAll('*', '[^/]*')}$`)
  return (p) => p.account === account && shape.test(p.name)
}
