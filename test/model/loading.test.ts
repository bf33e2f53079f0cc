import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Packages of the AI SDK that a process has loaded after importing the model layer and making one call. */
async function loadedBy(definition: object | null): Promise<string[]> {
  const code = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier.startsWith('@ai-sdk/') || specifier.startsWith('@aws-sdk/')) loaded.add(specifier.split('/').slice(0, 2).join('/'))
        return next(specifier, context)
      },
    })
    const { createModel } = await import('./src/model/model.ts')
    const { createScriptedModel } = await import('./src/model/scripted.ts')
    const definition = ${JSON.stringify(definition)}
    if (definition) {
      const clock = { sleep: async () => {} }
      const model = createModel({ env: (name) => (name === 'AWS_REGION' ? 'eu-central-1' : 'key'), scripted: createScriptedModel({ clock }), fetch: () => Promise.reject(new Error('no network')) })
      const call = { sessionId: 's', n: 0, driver: 'd' }
      const messages = [{ role: 'user', content: 'hi' }]
      await model.call({ definition, system: '', messages, tools: [], signal: new AbortController().signal, call })
    }
    console.log(JSON.stringify([...loaded].sort()))`
  const args = ['--input-type=module', '-e', code]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  return JSON.parse(stdout) as string[]
}

/** What every package of a provider needs. */
const BASE = ['@ai-sdk/provider', '@ai-sdk/provider-utils']
const model = { provider: 'x', model: 'm' }
it.each([
  ['importing the model layer', null, []],
  ['a scripted model', { ...model, api: 'scripted', options: { steps: [{ text: 'hi' }] } }, []],
  ['an OpenAI model', { ...model, api: 'openai_chatcompletions' }, ['@ai-sdk/openai', ...BASE]],
  [
    'a compatible endpoint',
    { ...model, api: 'openai_chatcompletions', baseUrl: 'http://127.0.0.1:9/v1' },
    ['@ai-sdk/openai-compatible', ...BASE],
  ],
  ['an Anthropic model', { ...model, api: 'anthropic' }, ['@ai-sdk/anthropic', ...BASE]],
  ['a Gemini model', { ...model, api: 'google' }, ['@ai-sdk/google', ...BASE]],
  // its package leans on a part of Anthropic's
  ['a model on Bedrock', { ...model, api: 'amazon_bedrock' }, ['@ai-sdk/amazon-bedrock', '@ai-sdk/anthropic', ...BASE]],
])('%s loads the packages it needs and no other', async (_, definition, packages) => {
  expect(await loadedBy(definition)).toEqual(packages)
})
