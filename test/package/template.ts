import { readFile } from 'node:fs/promises'

export interface Resource {
  readonly Type: string
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation properties have the shape of their type
  readonly Properties: any
  readonly DeletionPolicy?: string
}

export interface Template {
  readonly Resources: { readonly [id: string]: Resource }
}

export async function readTemplate(file: string): Promise<Template> {
  return JSON.parse(await readFile(file, 'utf8')) as Template
}

/** Resources of one type, by logical id. */
export function ofType(template: Template, type: string): readonly (Resource & { readonly id: string })[] {
  return Object.entries(template.Resources)
    .filter(([, resource]) => resource.Type === type)
    .map(([id, resource]) => ({ id, ...resource }))
}

export interface Statement {
  readonly Effect: string
  readonly Action: string | readonly string[]
  readonly Resource: unknown
}

/** Everything a role may do. */
export const statementsOf = (role: Resource): readonly Statement[] =>
  // one that is not there is a reference to AWS::NoValue
  role.Properties.Policies.flatMap(
    (p: { PolicyDocument?: { Statement: Statement[] } }) => p.PolicyDocument?.Statement ?? [],
  )

/** What is wrong with a statement: a wildcard among its actions or resources. */
export function wildcards(statement: Statement): readonly string[] {
  const actions = [statement.Action].flat().filter((action) => action.includes('*'))
  return JSON.stringify(statement.Resource).includes('*') ? [...actions, JSON.stringify(statement.Resource)] : actions
}
