// Packs all packages as tarballs, as `npm publish` would upload them: stowage, @stowage/provisioner and
// @stowage/create-provisioner. The directory of the tarballs is the only argument, by default dist/tarballs.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { PACKAGE_NAMES } from './packages.mjs'

const ROOT = new URL('..', import.meta.url).pathname
const to = resolve(process.argv[2] ?? join(ROOT, 'dist', 'tarballs'))

await mkdir(to, { recursive: true })
// The script prepack of stowage builds all packages.
for (const folder of [ROOT, ...PACKAGE_NAMES.map((name) => join(ROOT, 'dist', 'packages', name))]) {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--silent', '--pack-destination', to], { cwd: folder })
  console.log(join(to, stdout.trim().split('\n').at(-1)))
}
