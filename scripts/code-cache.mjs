// Writes the code cache of the program for the Node.js that runs the build: runs a server (code-cache-training.mjs) and stores the
// functions that V8 has compiled. The program also runs without a cache, so a build only warns on a machine where the server
// cannot run.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { bundleOptions } from './bundle-options.mjs'

const TRAINING = new URL('code-cache-training.mjs', import.meta.url).pathname
/** V8 accepts a cache only with the flags of the process that wrote it. These are the flags of `up` and `server` in bin/stowage. */
const SERVER_FLAGS = ['--max-semi-space-size=16']
const TRAINING_MS_MAX = 120_000

export async function writeCodeCache(script) {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-code-cache-'))
  try {
    const entryPoints = { driver: 'src/csi/fake/fake-driver-process.ts' }
    const outExtension = { '.js': '.mjs' }
    await build({ ...bundleOptions(''), entryPoints, outExtension, outdir: dir, splitting: false, sourcemap: false })
    const args = [...SERVER_FLAGS, TRAINING, script, dir]
    await promisify(execFile)(process.execPath, args, { timeout: TRAINING_MS_MAX })
  } catch (error) {
    console.warn(`The program starts more slowly, because its code cache was not written: ${error.message}`)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
