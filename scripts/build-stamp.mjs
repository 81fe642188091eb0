// Determines whether dist/ was built from the present inputs. The stamp is a hash over the paths, sizes and modification times
// of all files that the build compiles or copies, so that a deleted or renamed file counts as a change too.
import { createHash } from 'node:crypto'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = new URL('..', import.meta.url).pathname
const STAMP = join(ROOT, 'dist', '.inputs')
const FILES = ['package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE']
/** Folders with code. Other files in them, such as tests, do not count. */
const SOURCE_FOLDERS = ['src', 'bench', 'scripts']
/** Folders whose files are copied into packages. */
const COPIED_FOLDERS = ['packages', 'docs', 'examples']

export async function stampOfInputs() {
  const sources = (await filesIn(SOURCE_FOLDERS)).filter(isSource)
  const copied = (await filesIn(COPIED_FOLDERS)).filter((path) => !path.includes('node_modules'))
  const lines = await Promise.all([...FILES, ...sources, ...copied].map(describe))
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

export async function isBuiltFrom(stamp) {
  return (await readFile(STAMP, 'utf8').catch(() => undefined)) === stamp
}

export const writeStamp = (stamp) => writeFile(STAMP, stamp)

/** Call before a build: without a stamp, the next build starts again after an interruption. */
export const removeStamp = () => rm(STAMP, { force: true })

async function filesIn(folders) {
  const found = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(join(ROOT, folder), { recursive: true })).map((name) => join(folder, name)),
    ),
  )
  return found.flat().sort()
}

const isSource = (path) => /\.(ts|tsx|js|mjs|json|css|html)$/.test(path) && !/\.test\.tsx?$/.test(path)

async function describe(path) {
  const file = await stat(join(ROOT, path)).catch(() => undefined)
  return file?.isDirectory() ? path : `${path} ${file?.size} ${file?.mtimeMs}`
}
