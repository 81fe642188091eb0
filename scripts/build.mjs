// Bundles the command line program, the SDK for provisioners, the fake CSI driver, benchmarks and simulator into dist/, and
// writes the types of the SDK. Native and worker-based packages stay outside the bundle. Does nothing if dist/ is up to date;
// --force builds anyway.

import { chmod, readFile } from 'node:fs/promises'
import { build } from 'esbuild'
import { isBuiltFrom, stampOfInputs, writeStamp } from './build-stamp.mjs'
import { writeTypes } from './types.mjs'

const stamp = await stampOfInputs()
if (!process.argv.includes('--force') && (await isBuiltFrom(stamp))) process.exit(0)

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))

await writeTypes()
await build({
  entryPoints: {
    stowage: 'src/main.ts',
    provisioner: 'src/sdk/provisioner.ts',
    'provisioner-testing': 'src/sdk/testing.ts',
    bench: 'bench/main.ts',
    sim: 'src/sim/command/main.ts',
    'fake-driver': 'src/csi/fake/fake-driver-process.ts',
  },
  absWorkingDir: new URL('..', import.meta.url).pathname,
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  external: ['lmdb', 'pino'],
  chunkNames: 'chunks/[name]-[hash]',
  define: { STOWAGE_VERSION: JSON.stringify(version) },
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
await chmod(new URL('../dist/stowage.js', import.meta.url), 0o755)
await writeStamp(stamp)
