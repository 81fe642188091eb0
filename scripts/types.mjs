// Writes dist/types: the declarations of what other packages may import, and of nothing else. The compiler declares
// every file it meets; kept are those that can be reached from the doors.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = new URL('..', import.meta.url).pathname
const DOORS = ['sdk/provisioner.d.ts', 'sdk/testing.d.ts']
const ALL = join(ROOT, 'dist', `types.all.${process.pid}`)
const KEPT = join(ROOT, 'dist', `types.new.${process.pid}`)
const TYPES = join(ROOT, 'dist', 'types')

export async function writeTypes() {
  for (const dir of [ALL, KEPT]) await rm(dir, { recursive: true, force: true })
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const project = join(ROOT, 'scripts', 'types.tsconfig.json')
  await promisify(execFile)(process.execPath, [compiler, '-p', project, '--outDir', ALL])
  for (const file of await reachable(DOORS.map((door) => join(ALL, door)))) {
    const to = join(KEPT, relative(ALL, file))
    await mkdir(dirname(to), { recursive: true })
    await cp(file, to)
  }
  await rm(TYPES, { recursive: true, force: true })
  await rename(KEPT, TYPES)
  await rm(ALL, { recursive: true, force: true })
}

async function reachable(doors) {
  const files = new Set(doors)
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    for (const [, path] of text.matchAll(/from '(\.[^']+)\.ts'/g)) files.add(`${resolve(dirname(file), path)}.d.ts`)
  }
  return files
}
