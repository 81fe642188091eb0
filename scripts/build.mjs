// Bundles the command line program and the benchmarks into dist/. Native and worker-based packages stay outside the bundle.

import { chmod, readFile } from 'node:fs/promises'
import { build } from 'esbuild'

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))

await build({
  entryPoints: { stowage: 'src/main.ts', bench: 'bench/main.ts' },
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
