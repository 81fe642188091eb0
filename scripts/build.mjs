// Builds dist/: the program with its code cache (code-cache.mjs), the page of the console (console-page.mjs), the packages for
// authors of provisioners (packages.mjs), and the tools of this repository (benchmarks, simulator, fake CSI driver). Does nothing
// if dist/ is up to date; --force builds anyway. --release, for `npm pack`, builds only what is published, and removes the files
// of earlier builds.

import { readdir, readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { build } from 'esbuild'
import { isBuiltFrom, removeStamp, stampOfInputs, writeStamp } from './build-stamp.mjs'
import { bundleOptions, programOptions } from './bundle-options.mjs'
import { writeCodeCache } from './code-cache.mjs'
import { buildConsolePage } from './console-page.mjs'
import { buildPackages } from './packages.mjs'

const ROOT = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'))
const options = bundleOptions(version)

if (process.argv.includes('--release')) {
  await removeStamp()
  for (const name of ['program', 'console', 'packages'])
    await rm(new URL(`dist/${name}`, ROOT), { recursive: true, force: true })
  await Promise.all([buildProgram(), buildConsolePage(version), buildPackages(version)])
} else {
  const stamp = await stampOfInputs()
  if (process.argv.includes('--force') || !(await isBuiltFrom(stamp))) {
    await removeStamp()
    await Promise.all([buildProgram(), buildConsolePage(version), buildPackages(version), buildTools()])
    await writeStamp(stamp)
  }
}

/** Builds the script of the program, its code cache, and then stowage.js, which starts it. */
async function buildProgram() {
  const { metafile } = await build(programOptions(version))
  const script = basename(Object.keys(metafile.outputs).find((path) => path.endsWith('.cjs')))
  await writeCodeCache(new URL(`dist/program/${script}`, ROOT).pathname)
  const define = { STOWAGE_PROGRAM: JSON.stringify(script) }
  await build({ ...options, splitting: false, banner: {}, define, entryPoints: { stowage: 'src/start.ts' } })
  for (const name of await readdir(new URL('dist/program/', ROOT)))
    if (!name.startsWith(script)) await rm(new URL(`dist/program/${name}`, ROOT))
}

function buildTools() {
  return build({
    ...options,
    external: [...options.external, 'playwright-core'],
    entryPoints: {
      bench: 'bench/main.ts',
      sim: 'src/sim/command/main.ts',
      'fake-driver': 'src/csi/fake/fake-driver-process.ts',
    },
    chunkNames: 'tools/[name]-[hash]',
  })
}
