// Writes the program of this version to test/releases/, as one compressed file. The tests of mixed versions run the file
// together with the current program. Run this script on the commit of a release. Packages stay outside the file, which imports
// them from node_modules.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import { build } from 'esbuild'

const ROOT = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'))

const { outputFiles } = await build({
  entryPoints: ['src/main.ts'],
  absWorkingDir: ROOT.pathname,
  bundle: true,
  minify: true,
  legalComments: 'none',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  define: { STOWAGE_VERSION: JSON.stringify(version) },
  write: false,
  logLevel: 'warning',
})
const folder = new URL('test/releases/', ROOT)
await mkdir(folder, { recursive: true })
const file = new URL(`stowage-${version}.mjs.br`, folder)
await writeFile(file, await promisify(brotliCompress)(outputFiles[0].contents))
console.log(`${file.pathname} holds version ${version}.`)
