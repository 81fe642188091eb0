// Builds dist/: the program, the page of the console (console-page.mjs), the packages for authors of provisioners
// (packages.mjs), and the tools of this repository (benchmarks, simulator, fake CSI driver). Does nothing if dist/ is up to date;
// --force builds anyway. --release, for `npm pack`, builds only what is published, and removes the files of earlier builds. Other
// builds keep them, because a running program may still load them.

import { readFile, rm } from 'node:fs/promises'
import { build } from 'esbuild'
import { isBuiltFrom, removeStamp, stampOfInputs, writeStamp } from './build-stamp.mjs'
import { bundleOptions } from './bundle-options.mjs'
import { buildConsolePage } from './console-page.mjs'
import { buildPackages } from './packages.mjs'

const ROOT = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'))
const options = bundleOptions(version)

if (process.argv.includes('--release')) {
  await removeStamp()
  for (const name of ['chunks', 'console', 'packages'])
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

function buildProgram() {
  return build({ ...options, entryPoints: { stowage: 'src/main.ts' }, chunkNames: 'chunks/[name]-[hash]' })
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
