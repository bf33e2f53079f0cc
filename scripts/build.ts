/**
 * One bundle per function: `dist/<function>/index.mjs` and its chunks. ESM with splitting, because in a
 * single file the SDK's lazy credential providers would be loaded with every cold start. Source maps and the report of
 * sizes go to `dist/meta/`, which is in no zip.
 *
 *     node scripts/build.ts
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'

export const FUNCTIONS = ['http', 'authorizer', 'start-run', 'worker', 'sweep', 'dead-letter'] as const
export type FunctionName = (typeof FUNCTIONS)[number]

export interface SizeReport {
  readonly function: FunctionName
  /** bytes of index.mjs and what it imports statically: loaded at every cold start */
  readonly coldStartBytes: number
  /** bytes of all files, chunks that are loaded on demand included */
  readonly totalBytes: number
  readonly files: number
  /** npm packages in the bundle, by bytes */
  readonly packages: { readonly [name: string]: number }
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Bundles every function of `handlers/` into `outdir`. */
export async function buildFunctions(outdir = path.join(ROOT, 'dist')): Promise<SizeReport[]> {
  await rm(outdir, { recursive: true, force: true })
  await mkdir(path.join(outdir, 'meta'), { recursive: true })
  const reports = await Promise.all(FUNCTIONS.map((name) => buildFunction(name, outdir)))
  await writeFile(path.join(outdir, 'meta/sizes.json'), `${JSON.stringify(reports, null, 2)}\n`)
  return reports
}

async function buildFunction(name: FunctionName, outdir: string): Promise<SizeReport> {
  const folder = path.join(outdir, name)
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { index: `handlers/${name}.ts` },
    outdir: folder,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    splitting: true,
    minify: true,
    // the ES module builds, which can be shaken; some packages still need require (names too long for the minifier's own)
    mainFields: ['module', 'main'],
    banner: {
      js: "import{createRequire as bannerCreateRequire}from'node:module';const require=bannerCreateRequire(import.meta.url);",
    },
    sourcemap: 'external',
    metafile: true,
    logLevel: 'warning',
  })
  await writeFile(path.join(outdir, 'meta', `${name}.json`), JSON.stringify(metafile))
  const outputs = new Map(Object.entries(metafile.outputs).filter(([file]) => !file.endsWith('.map')))
  const entry = [...outputs].find(
    ([, output]) => output.entryPoint !== undefined && output.entryPoint === `handlers/${name}.ts`,
  )![0]
  await moveMaps(metafile, path.join(outdir, 'meta/maps', name))
  const bytes = (files: Iterable<string>) => [...files].reduce((sum, file) => sum + outputs.get(file)!.bytes, 0)
  return {
    function: name,
    coldStartBytes: bytes(importedAtOnce(outputs, entry)),
    totalBytes: bytes(outputs.keys()),
    files: outputs.size,
    packages: packagesOf([...outputs.values()]),
  }
}

type Output = Metafile['outputs'][string]

/** The files that are loaded with `entry`, itself included: what stands behind `import()` is not. */
function importedAtOnce(outputs: ReadonlyMap<string, Output>, entry: string): Set<string> {
  const seen = new Set([entry])
  for (const file of seen)
    for (const { path: imported, kind, external } of outputs.get(file)!.imports)
      if (!external && kind !== 'dynamic-import') seen.add(imported)
  return seen
}

async function moveMaps(metafile: Metafile, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const file of Object.keys(metafile.outputs))
    if (file.endsWith('.map')) await rename(path.resolve(ROOT, file), path.join(folder, path.basename(file)))
}

function packagesOf(outputs: readonly Output[]): { [name: string]: number } {
  const sizes: { [name: string]: number } = {}
  for (const output of outputs)
    for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
      const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1]
      if (name && bytesInOutput > 0) sizes[name] = (sizes[name] ?? 0) + bytesInOutput
    }
  return Object.fromEntries(Object.entries(sizes).sort(([, a], [, b]) => b - a))
}

if (import.meta.main) {
  for (const { function: name, coldStartBytes, totalBytes, files } of await buildFunctions())
    console.log(
      `${name.padEnd(12)} ${kilobytes(coldStartBytes)} at cold start, ${kilobytes(totalBytes)} in ${files} files`,
    )
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(0).padStart(5)} KB`
}
