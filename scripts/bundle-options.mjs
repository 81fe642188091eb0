// The options of esbuild that the bundles of the program, the tools and the packages share.
const ROOT = new URL('..', import.meta.url).pathname

/** Native and worker-based packages stay outside the bundle. */
export const bundleOptions = (version) => ({
  absWorkingDir: ROOT,
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  external: ['lmdb', 'pino', 'koffi'],
  define: { STOWAGE_VERSION: JSON.stringify(version) },
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
