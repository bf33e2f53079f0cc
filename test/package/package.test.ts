import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { readLimits } from '../../src/config-limits.ts'
import { DEFAULT_LIMITS } from '../../src/domain/configured-limits.ts'
import { OPERATIONS } from '../../src/http/openapi/operations.ts'
import { DUE_INDEX, RUNS_INDEX, TABLE_DEFINITION, TTL_ATTRIBUTE } from '../../src/store/table.ts'
import { readZip, type ZipEntry } from '../support/zip.ts'
import {
  ofType,
  type Resource,
  readTemplate,
  type Statement,
  statementsOf,
  type Template,
  wildcards,
} from './template.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FUNCTIONS = ['http', 'authorizer', 'startRun', 'worker', 'sweep', 'deadLetter'] as const
/** logical ids, as the framework makes them of the functions' names */
const logicalId = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1)}LambdaFunction`
const getAtt = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] })

/** schedules in the group of the stack */
const SCHEDULES = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are CloudFormation's
  'Fn::Sub': 'arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/subledger-test/*',
}

type Make = (source: { resolveVariable: (name: string) => Promise<unknown> }) => Promise<unknown>

let template: Template
/** the same stack with tokens and with limits of its own */
let withTokens: Template
const zips = new Map<string, readonly ZipEntry[]>()

const pack = async (...more: string[]): Promise<Template> => {
  await promisify(execFile)('npm', ['run', 'package', '--', '--stage', 'test', '--region', 'eu-central-1', ...more], {
    cwd: ROOT,
    env: { ...process.env, AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', OPENAI_API_KEY: 'sk-not-in-any-template' },
  })
  return readTemplate(path.join(ROOT, '.serverless/cloudformation-template-update-stack.json'))
}
const OTHERS = [
  'auth=oidc',
  'oidcIssuer=https://issuer.example',
  'oidcAudience=api',
  'maxDepth=3',
  'tenantConcurrency=70',
].flatMap((p) => ['--param', p])

beforeAll(async () => {
  withTokens = await pack(...OTHERS)
  template = await pack()
  for (const name of FUNCTIONS) zips.set(name, await readZip(path.join(ROOT, `.serverless/${name}.zip`)))
}, 120_000)

const lambda = (name: string): Resource => template.Resources[logicalId(name)]!

describe('functions', () => {
  test('are the six that are expected', () => {
    expect(
      ofType(template, 'AWS::Lambda::Function')
        .map((f) => f.id)
        .sort(),
    ).toEqual(FUNCTIONS.map(logicalId).sort())
  })

  test.each(FUNCTIONS)('%s runs on arm64 and Node 24', (name) => {
    expect(lambda(name).Properties).toMatchObject({ Architectures: ['arm64'], Runtime: 'nodejs24.x' })
  })

  test('only the worker may call itself round and round', () => {
    const loops = FUNCTIONS.filter((name) => lambda(name).Properties.RecursiveLoop !== undefined)
    expect(loops).toEqual(['worker'])
    expect(lambda('worker').Properties.RecursiveLoop).toBe('Allow')
  })

  test('an event of the worker is tried three times, has an age, and ends in the dead-letter queue', () => {
    const config = ofType(template, 'AWS::Lambda::EventInvokeConfig').find(
      (c) => c.Properties.FunctionName.Ref === logicalId('worker'),
    )
    expect(config?.Properties).toMatchObject({
      MaximumRetryAttempts: 2,
      MaximumEventAgeInSeconds: 600,
      DestinationConfig: { OnFailure: { Destination: getAtt('DeadLetters') } },
    })
  })

  test('every function has the settings that it shares with the others', () => {
    for (const name of FUNCTIONS)
      expect(lambda(name).Properties.Environment.Variables).toMatchObject({
        SUBLEDGER_TABLE: template.Resources.Table!.Properties.TableName,
        SUBLEDGER_TENANT: 'default',
        SUBLEDGER_WORKER: lambda('worker').Properties.FunctionName,
        SUBLEDGER_LEASE_SECONDS: '90',
        SUBLEDGER_EVENT_AGE_SECONDS: '120',
      })
  })

  test('limits are those of the code unless they are set', () => {
    for (const name of ['http', 'startRun'])
      expect(readLimits(lambda(name).Properties.Environment.Variables)).toEqual(DEFAULT_LIMITS)
    expect(lambda('http').Properties.Environment.Variables).toMatchObject({ SUBLEDGER_MAX_DEPTH: '5' })
    expect(withTokens.Resources[logicalId('startRun')]!.Properties.Environment.Variables).toMatchObject({
      SUBLEDGER_MAX_DEPTH: '3',
      SUBLEDGER_TENANT_CONCURRENCY: '70',
    })
  })

  test('a start is tried again: an event that is delivered twice starts one run', () => {
    const config = ofType(template, 'AWS::Lambda::EventInvokeConfig').find(
      (c) => c.Properties.FunctionName.Ref === logicalId('startRun'),
    )
    expect(config?.Properties.MaximumRetryAttempts).toBe(2)
  })

  test('the dead-letter function reads the queue, and gives single messages back', () => {
    const [mapping, ...more] = ofType(template, 'AWS::Lambda::EventSourceMapping')
    expect(more).toEqual([])
    expect(mapping?.Properties).toMatchObject({
      EventSourceArn: getAtt('DeadLetters'),
      FunctionName: getAtt(logicalId('deadLetter')),
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    })
    const queue = template.Resources.DeadLetters!.Properties
    expect(queue.VisibilityTimeout).toBeGreaterThanOrEqual(6 * lambda('deadLetter').Properties.Timeout)
  })

  test('sweep and timer run every minute; the schedule of the file is there and switched off', () => {
    const rules = ofType(template, 'AWS::Events::Rule').map(({ Properties: p }) => ({
      target: p.Targets[0].Arn['Fn::GetAtt'][0],
      rate: p.ScheduleExpression,
      state: p.State,
      input: p.Targets[0].Input,
    }))
    expect(rules).toEqual([
      {
        target: logicalId('startRun'),
        rate: 'rate(1 minute)',
        state: 'ENABLED',
        input: '{"due":true}',
      },
      { target: logicalId('sweep'), rate: 'rate(1 minute)', state: 'ENABLED', input: '{}' },
    ])
    const [schedule, ...more] = ofType(template, 'AWS::Scheduler::Schedule').map((s) => s.Properties)
    expect(more).toEqual([])
    expect(schedule).toMatchObject({
      ScheduleExpression: 'cron(0 3 * * ? *)',
      ScheduleExpressionTimezone: 'Europe/Berlin',
      State: 'DISABLED',
      Target: {
        Arn: getAtt(logicalId('startRun')),
        RoleArn: getAtt('SchedulerRole'),
        Input: JSON.stringify({ schedule: 'nightly', scheduledTime: '<aws.scheduler.scheduled-time>' }),
      },
    })
  })

  test('logs are kept for a while and not for ever', () => {
    const groups = ofType(template, 'AWS::Logs::LogGroup')
    expect(groups).toHaveLength(FUNCTIONS.length)
    for (const group of groups) expect(group.Properties.RetentionInDays).toBe(30)
  })
})

describe('roles', () => {
  const actions = (role: Resource) => statementsOf(role).flatMap((s) => s.Action)

  /** EventBridge Scheduler's own: no function has it */
  const functionRoles = () => ofType(template, 'AWS::IAM::Role').filter((role) => role.id !== 'SchedulerRole')

  test('each function has one of its own', () => {
    const roles = FUNCTIONS.map((name) => lambda(name).Properties.Role['Fn::GetAtt'][0])
    expect(new Set(roles).size).toBe(FUNCTIONS.length)
    expect(
      functionRoles()
        .map((r) => r.id)
        .sort(),
    ).toEqual([...roles].sort())
  })

  test('none has a wildcard, a managed policy, or a policy from elsewhere', () => {
    for (const role of ofType(template, 'AWS::IAM::Role')) {
      expect(role.Properties.ManagedPolicyArns).toBeUndefined()
      // what is in the group of the stack has no names before it is made
      const others = statementsOf(role).filter((s) => JSON.stringify(s.Resource) !== JSON.stringify(SCHEDULES))
      for (const statement of others) expect([role.id, wildcards(statement)]).toEqual([role.id, []])
    }
    expect(ofType(template, 'AWS::IAM::Policy')).toEqual([])
  })

  test('the check for wildcards can fail', () => {
    expect(wildcards({ Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: '*' })).toHaveLength(1)
    expect(wildcards({ Effect: 'Allow', Action: ['s3:*'], Resource: getAtt('Table') })).toEqual(['s3:*'])
    expect(wildcards({ Effect: 'Allow', Action: 'a:B', Resource: { 'Fn::Sub': 'arn:x/index/*' } })).toHaveLength(1)
  })

  test('nobody may scan the table or change it, and two may delete items', () => {
    const allowed = ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:Query']
    const deleting = ['HttpRole', 'SweepRole']
    for (const role of ofType(template, 'AWS::IAM::Role'))
      expect(actions(role).filter((a) => a.startsWith('dynamodb:') && !allowed.includes(a))).toEqual(
        deleting.includes(role.id) ? ['dynamodb:DeleteItem'] : [],
      )
  })

  test('EventBridge Scheduler may invoke the function that starts runs, and nothing else', () => {
    const role = template.Resources.SchedulerRole!
    expect(statementsOf(role)).toEqual([
      { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: getAtt(logicalId('startRun')) },
      { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: getAtt('TickDeadLetters') },
    ])
    expect(role.Properties.AssumeRolePolicyDocument.Statement[0]).toMatchObject({
      Principal: { Service: 'scheduler.amazonaws.com' },
      Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
    })
  })

  test('only the API makes and ends schedules, in the group of the stack, and passes on one role', () => {
    const about = /^(scheduler|iam):/
    for (const role of ofType(template, 'AWS::IAM::Role')) {
      const found = statementsOf(role).filter((s) => [s.Action].flat().some((a) => about.test(a)))
      if (role.id !== 'HttpRole') expect([role.id, found]).toEqual([role.id, []])
      else
        expect(found).toEqual([
          {
            Effect: 'Allow',
            Action: ['scheduler:CreateSchedule', 'scheduler:DeleteSchedule'],
            Resource: SCHEDULES,
          },
          {
            Effect: 'Allow',
            Action: 'iam:PassRole',
            Resource: getAtt('SchedulerRole'),
            Condition: { StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } },
          },
        ])
    }
    expect(template.Resources.ScheduleGroup!.Properties.Name).toBe('subledger-test')
    expect(lambda('startRun').Properties.Environment.Variables).toMatchObject({ SUBLEDGER_SCHEDULER: 'eventbridge' })
    expect(lambda('http').Properties.Environment.Variables).toMatchObject({
      SUBLEDGER_SCHEDULER_GROUP: 'subledger-test',
      SUBLEDGER_SCHEDULER_ROLE: getAtt('SchedulerRole'),
      SUBLEDGER_SCHEDULER_TARGET: getAtt(logicalId('startRun')),
      SUBLEDGER_SCHEDULER_DEAD_LETTERS: getAtt('TickDeadLetters'),
    })
  })

  test('what may be invoked is the worker, by everything that starts or wakes sessions', () => {
    for (const role of functionRoles()) {
      const invoke = statementsOf(role).filter((s) => [s.Action].flat().includes('lambda:InvokeFunction'))
      if (role.id === 'AuthorizerRole') expect(invoke).toEqual([])
      else
        expect(invoke.map((s) => s.Resource)).toEqual([
          {
            // biome-ignore lint/suspicious/noTemplateCurlyInString: these are CloudFormation's
            'Fn::Sub': 'arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:subledger-test-worker',
          },
        ])
    }
    expect(lambda('worker').Properties.FunctionName).toBe('subledger-test-worker')
  })

  test('only the worker may send to the dead-letter queue, and only its reader may take from it', () => {
    const using = (action: string) =>
      ofType(template, 'AWS::IAM::Role')
        .filter((role) => statementsOf(role).some((s) => isAbout(s, action)))
        .map((role) => role.id)
    const isAbout = (s: Statement, action: string) =>
      [s.Action].flat().includes(action) && JSON.stringify(s.Resource) === JSON.stringify(getAtt('DeadLetters'))
    expect(using('sqs:SendMessage')).toEqual(['WorkerRole'])
    expect(using('sqs:ReceiveMessage')).toEqual(['DeadLetterRole'])
  })

  test('only the API reads runs by tenant, only the sweep and the timer of schedules read what is due', () => {
    const reading = (index: string) =>
      ofType(template, 'AWS::IAM::Role')
        .filter((role) => JSON.stringify(statementsOf(role)).includes(`/index/${index}"`))
        .map((role) => role.id)
    expect(reading(RUNS_INDEX)).toEqual(['HttpRole'])
    expect(reading(DUE_INDEX)).toEqual(['StartRunRole', 'SweepRole'])
  })
})

describe('routes', () => {
  const PUBLIC = ['GET /', 'GET /v1/health', 'GET /v1/openapi.json']

  test('all but the three that hold no data need IAM', () => {
    const routes = ofType(template, 'AWS::ApiGatewayV2::Route')
    const open = routes.filter((r) => r.Properties.AuthorizationType !== 'AWS_IAM')
    expect(open.map((r) => r.Properties.RouteKey).sort()).toEqual(PUBLIC)
  })

  test('they need tokens where callers are known by tokens, and the gateway asks our own function about them', () => {
    const routes = ofType(withTokens, 'AWS::ApiGatewayV2::Route')
    const [authorizer, ...more] = ofType(withTokens, 'AWS::ApiGatewayV2::Authorizer')
    expect(more).toEqual([])
    const open = routes.filter((r) => r.Properties.AuthorizationType !== 'CUSTOM')
    expect(open.map((r) => r.Properties.RouteKey).sort()).toEqual(PUBLIC)
    for (const route of routes)
      if (!open.includes(route)) expect(route.Properties.AuthorizerId).toEqual({ Ref: authorizer!.id })
    expect(authorizer!.Properties).toMatchObject({
      AuthorizerType: 'REQUEST',
      AuthorizerPayloadFormatVersion: '2.0',
      EnableSimpleResponses: true,
      IdentitySource: ['$request.header.Authorization'],
    })
    expect(JSON.stringify(authorizer!.Properties.AuthorizerUri)).toContain('"AuthorizerLambdaFunction"')
  })

  test('both locks look for the same issuer, and neither is told to let everybody in', () => {
    for (const name of ['HttpLambdaFunction', 'AuthorizerLambdaFunction']) {
      const settings = {
        SUBLEDGER_AUTH: 'oidc',
        SUBLEDGER_OIDC_ISSUER: 'https://issuer.example',
        SUBLEDGER_OIDC_AUDIENCE: 'api',
      }
      expect(withTokens.Resources[name]!.Properties.Environment.Variables).toMatchObject(settings)
      expect(template.Resources[name]!.Properties.Environment.Variables.SUBLEDGER_AUTH).toBe('iam')
    }
  })

  test('without a list of principals those of the own account are let in, and no others', () => {
    const { SUBLEDGER_IAM_PRINCIPALS: principals } = lambda('http').Properties.Environment.Variables
    expect(JSON.parse(principals['Fn::Sub'])).toEqual([
      // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation puts the account in
      { principal: '${AWS::AccountId}', tenant: 'default', scopes: ['read', 'run', 'approve', 'admin'] },
    ])
  })

  test('a stage that would let everybody in is not packaged', async () => {
    const principals = createRequire(import.meta.url)('../../scripts/iam-principals.cjs') as Make
    const make = (given: { [name: string]: unknown }) =>
      principals({ resolveVariable: async (name) => given[name.replace('param:', '')] })
    await expect(make({ auth: 'none', 'sls:stage': 'dev' })).rejects.toThrow('it must be iam or oidc')
    expect(await make({ auth: 'none', 'sls:stage': 'offline' })).toBe('')
    const list = [{ principal: '123456789012', tenant: 'acme', scopes: ['read'] }]
    for (const iamPrincipals of [list, JSON.stringify(list)])
      expect(await make({ auth: 'iam', 'sls:stage': 'dev', iamPrincipals })).toBe(JSON.stringify(list))
    await expect(make({ auth: 'iam', 'sls:stage': 'dev', iamPrincipals: '[{' })).rejects.toThrow('is not JSON')
  })

  test('those of the API are there, as its OpenAPI document has them, and so is one for everything else', () => {
    const named = OPERATIONS.filter((o) => o.answer).map((o) => `${o.method} ${o.path}`)
    expect(
      ofType(template, 'AWS::ApiGatewayV2::Route')
        .map((r) => r.Properties.RouteKey)
        .sort(),
    ).toEqual(['$default', ...named].sort())
  })
})

describe('the table', () => {
  test('is the one that the code knows, with both indexes', () => {
    const { AttributeDefinitions, BillingMode, GlobalSecondaryIndexes, KeySchema } =
      template.Resources.Table!.Properties
    expect({ AttributeDefinitions, BillingMode, GlobalSecondaryIndexes, KeySchema }).toEqual(TABLE_DEFINITION)
    expect(GlobalSecondaryIndexes).toHaveLength(2)
  })

  test('can be brought back to any minute, forgets by the attribute that the code sets, and outlives the stack', () => {
    const table = template.Resources.Table!
    expect(table.Properties.PointInTimeRecoverySpecification).toEqual({ PointInTimeRecoveryEnabled: true })
    expect(table.Properties.TimeToLiveSpecification).toEqual({ AttributeName: TTL_ATTRIBUTE, Enabled: true })
    expect(table.DeletionPolicy).toBe('Retain')
  })
})

describe('zips', () => {
  test.each(FUNCTIONS)('%s holds its handler', (name) => {
    const handler = lambda(name).Properties.Handler as string
    const file = handler.replace(/\.handler$/, '.mjs')
    const entry = zips.get(name)!.find((e) => e.name === file)
    expect(entry?.text()).toContain('handler')
  })

  test.each(FUNCTIONS)('%s has code of its own function and nothing beside it but team files', (name) => {
    const folder = path.dirname(lambda(name).Properties.Handler as string)
    const teams = name === 'http' || name === 'startRun' ? '|teams/[\\w.-]+\\.ya?ml' : ''
    const expected = new RegExp(`^(${folder}/[\\w.-]+\\.mjs${teams})$`)
    expect(zips.get(name)!.filter((e) => !expected.test(e.name))).toEqual([])
  })

  test('team files are where runs start', () => {
    for (const name of FUNCTIONS)
      expect([name, zips.get(name)!.some((e) => e.name.startsWith('teams/'))]).toEqual([
        name,
        name === 'http' || name === 'startRun',
      ])
  })

  test('emulators, tests and tools are in none', async () => {
    const forbidden = /^(dynalite|classic-level|vitest|serverless.*|osls|esbuild|aws-sdk-client-mock)$/
    for (const name of FUNCTIONS) {
      const { inputs, packages } = await bundled(name)
      expect(packages.filter((p) => forbidden.test(p))).toEqual([])
      expect(inputs.filter((i) => /^(test|bench|scripts|src\/(local|cli))\//.test(i))).toEqual([])
    }
  })

  test('provider packages are in the worker alone', async () => {
    for (const name of FUNCTIONS) {
      const { packages } = await bundled(name)
      expect([name, packages.some((p) => p.startsWith('@ai-sdk/'))]).toEqual([name, name === 'worker'])
    }
  })

  /** What went into the files of a function's zip, by the bundler's own account. */
  async function bundled(name: string): Promise<{ inputs: string[]; packages: string[] }> {
    const folder = path.dirname(lambda(name).Properties.Handler as string)
    const meta = JSON.parse(await readFile(path.join(ROOT, 'dist/meta', `${path.basename(folder)}.json`), 'utf8'))
    const inputs = zips
      .get(name)!
      .flatMap((e) => Object.entries<{ bytesInOutput: number }>(meta.outputs[e.name]?.inputs ?? {}))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([input]) => input)
    const packages = inputs.flatMap((input) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? [])
    expect(inputs).toContain(`handlers/${path.basename(folder)}.ts`)
    return { inputs, packages }
  }
})

describe('secrets', () => {
  test('no key of a provider is in the template, also when the shell that packages has one', () => {
    expect(JSON.stringify(template)).not.toContain('sk-not-in-any-template')
    for (const name of FUNCTIONS)
      expect(
        Object.keys(lambda(name).Properties.Environment.Variables).filter((v) => !v.startsWith('SUBLEDGER_')),
      ).toEqual([])
  })
})
