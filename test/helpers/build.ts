// Builds the program if a source file is newer. Test files run in separate processes: the first one builds, and the others
// wait for it.
import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = new URL('../..', import.meta.url).pathname
const PROGRAM = join(ROOT, 'dist', 'stowage.js')
const LOCK = join(ROOT, 'dist', '.building')

/** Returns the path of the built program, or STOWAGE_PROGRAM if it is set, for example to an installed program. */
export async function buildProgram(): Promise<string> {
  if (process.env.STOWAGE_PROGRAM) return process.env.STOWAGE_PROGRAM
  while (await isStale()) {
    if (await acquireLock()) {
      try {
        await promisify(execFile)(process.execPath, [join(ROOT, 'scripts', 'build.mjs')])
      } finally {
        await rm(LOCK, { recursive: true, force: true })
      }
    } else await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return PROGRAM
}

async function acquireLock(): Promise<boolean> {
  await mkdir(join(ROOT, 'dist'), { recursive: true })
  try {
    await mkdir(LOCK)
    return true
  } catch {
    const lock = await stat(LOCK).catch(() => undefined)
    if (lock && Date.now() - lock.mtimeMs > 60_000) await rm(LOCK, { recursive: true, force: true }) // left by a killed build
    return false
  }
}

async function isStale(): Promise<boolean> {
  const built = await stat(PROGRAM).catch(() => undefined)
  if (!built) return true
  const names = await readdir(join(ROOT, 'src'), { recursive: true })
  const sources = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const times = await Promise.all(
    sources.map(async (name) => (await stat(join(ROOT, 'src', name)).catch(() => undefined))?.mtimeMs ?? 0),
  )
  return Math.max(...times) > built.mtimeMs
}
