// Writes the declarations that the SDK exports. Declarations that only the implementation imports are not copied.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = new URL('..', import.meta.url).pathname
const ENTRY_POINTS = ['sdk/provisioner.d.ts', 'sdk/testing.d.ts']
const ALL_TYPES = join(ROOT, 'dist', `types.all.${process.pid}`)
const NEW_TYPES = join(ROOT, 'dist', `types.new.${process.pid}`)

export async function writeTypes(typesDir) {
  for (const dir of [ALL_TYPES, NEW_TYPES]) await rm(dir, { recursive: true, force: true })
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const project = join(ROOT, 'scripts', 'types.tsconfig.json')
  await promisify(execFile)(process.execPath, [compiler, '-p', project, '--outDir', ALL_TYPES])
  for (const file of await findReachable(ENTRY_POINTS.map((entryPoint) => join(ALL_TYPES, entryPoint)))) {
    const to = join(NEW_TYPES, relative(ALL_TYPES, file))
    await mkdir(dirname(to), { recursive: true })
    await cp(file, to)
  }
  await rm(typesDir, { recursive: true, force: true })
  await mkdir(dirname(typesDir), { recursive: true })
  await rename(NEW_TYPES, typesDir)
  await rm(ALL_TYPES, { recursive: true, force: true })
}

async function findReachable(entryPoints) {
  const files = new Set(entryPoints)
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    for (const [, path] of text.matchAll(/from '(\.[^']+)\.ts'/g)) files.add(`${resolve(dirname(file), path)}.d.ts`)
  }
  return files
}
