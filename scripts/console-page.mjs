// Builds the page of the console into dist/console/: index.html, and scripts and styles with a hash of their content in their
// names, so that browsers can cache them. Each text file also has a brotli and a gzip copy.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { build } from 'esbuild'

const ROOT = new URL('..', import.meta.url).pathname
const SOURCE = join(ROOT, 'src', 'console', 'page')
const OUTPUT = join(ROOT, 'dist', 'console')
const COMPRESSED_TYPES = /\.(js|css|html|svg)$/

export async function buildConsolePage(version) {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { app: join(SOURCE, 'app.tsx') },
    outdir: OUTPUT,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    define: { STOWAGE_VERSION: JSON.stringify(version) },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  })
  const outputs = Object.keys(metafile.outputs).map((path) => basename(path))
  await writeFile(join(OUTPUT, 'index.html'), await buildPage(outputs))
  await Promise.all([...outputs, 'index.html'].filter((name) => COMPRESSED_TYPES.test(name)).map(compress))
}

/** Returns index.html with the names of the outputs in place of app.js and app.css. */
async function buildPage(outputs) {
  const source = await readFile(join(SOURCE, 'index.html'), 'utf8')
  return source.replaceAll(/"app\.(js|css)"/g, (_, type) => {
    const name = outputs.find((output) => output.startsWith('app-') && output.endsWith(`.${type}`))
    return `"/${name}"`
  })
}

async function compress(name) {
  const path = join(OUTPUT, name)
  const content = await readFile(path)
  const existingNames = await readdir(OUTPUT)
  const isHashed = name !== 'index.html'
  if (isHashed && existingNames.includes(`${name}.br`) && existingNames.includes(`${name}.gz`)) return
  const [brotli, gzipped] = await Promise.all([
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }),
    promisify(gzip)(content, { level: 9 }),
  ])
  await Promise.all([writeFile(`${path}.br`, brotli), writeFile(`${path}.gz`, gzipped)])
}
