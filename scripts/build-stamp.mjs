// Determines whether dist/ was built from the present sources. The stamp is a hash over the paths, sizes and modification
// times of sources, so that a deleted or renamed source counts as a change too.
import { createHash } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = new URL('..', import.meta.url).pathname
const STAMP = join(ROOT, 'dist', '.inputs')
const FILES = ['package.json', 'package-lock.json', 'tsconfig.json']
const FOLDERS = ['src', 'bench', 'scripts']

export async function stampOfInputs() {
  const found = await Promise.all(FOLDERS.map(filesIn))
  const lines = await Promise.all([...FILES, ...found.flat().sort()].map(describe))
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

export async function isBuiltFrom(stamp) {
  return (await readFile(STAMP, 'utf8').catch(() => undefined)) === stamp
}

export const writeStamp = (stamp) => writeFile(STAMP, stamp)

async function filesIn(folder) {
  const names = await readdir(join(ROOT, folder), { recursive: true })
  return names
    .filter((name) => /\.(ts|mjs|json)$/.test(name) && !name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
}

async function describe(path) {
  const file = await stat(join(ROOT, path)).catch(() => undefined)
  return `${path} ${file?.size} ${file?.mtimeMs}`
}
