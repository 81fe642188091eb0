// Unpacks the program of an earlier release, which scripts/keep-release.mjs has written, for tests of mixed versions.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'

const ROOT = new URL('../..', import.meta.url).pathname

/** Returns the path of the program of that version. The file lies below node_modules/, so that the program finds its packages. */
export async function unpackRelease(version: string): Promise<string> {
  const folder = join(ROOT, 'node_modules', '.cache', 'stowage')
  const program = join(folder, `stowage-${version}.mjs`)
  const compressed = await readFile(join(ROOT, 'test', 'releases', `stowage-${version}.mjs.br`))
  await mkdir(folder, { recursive: true })
  const partialPath = `${program}.${process.pid}`
  await writeFile(partialPath, await promisify(brotliDecompress)(compressed))
  await rename(partialPath, program)
  return program
}
