// Options of esbuild: those that the bundles of the program, the tools and the packages share, and all options of the program.
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

/**
 * The options of the program: one script, so that V8's code cache contains all of it and start.ts can compile it. It has no
 * unneeded spaces, because its text stays in memory.
 */
export const programOptions = (version) => {
  const { splitting: _, banner: __, define, ...options } = bundleOptions(version)
  return {
    ...options,
    entryPoints: { stowage: 'src/main.ts' },
    entryNames: 'program/[name]-[hash]',
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    define: { ...define, 'import.meta.url': 'programUrl' },
    banner: { js: '(function (require, programUrl) {' },
    footer: { js: '})' },
    minifyWhitespace: true,
    lineLimit: 160,
    metafile: true,
  }
}
