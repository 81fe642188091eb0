// Builds the program if a source file has changed (scripts/build.mjs decides). Test files run in separate processes: the first
// one builds, and the others wait for it.
import { execFile } from 'node:child_process'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = new URL('../..', import.meta.url).pathname
const PROGRAM = join(ROOT, 'dist', 'stowage.js')
const LOCK = join(ROOT, 'dist', '.building')

/** Returns the path of the built program, or STOWAGE_PROGRAM if it is set, for example to an installed program. */
export async function buildProgram(): Promise<string> {
  if (process.env.STOWAGE_PROGRAM) return process.env.STOWAGE_PROGRAM
  while (!(await acquireLock())) await new Promise((resolve) => setTimeout(resolve, 50))
  try {
    await promisify(execFile)(process.execPath, [join(ROOT, 'scripts', 'build.mjs')])
  } finally {
    await rm(LOCK, { recursive: true, force: true })
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
    if (lock && Date.now() - lock.mtimeMs > 120_000) await rm(LOCK, { recursive: true, force: true }) // left by a killed build
    return false
  }
}
