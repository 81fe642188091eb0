// Prepares the folder /opt/stowage of the image, for the Dockerfile and for build-image.mjs: the files of the npm package, its
// production dependencies, and a software bill of materials (sbom.cdx.json). The folder is the only argument.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withoutDevelopment } from './production-lock.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** Builds the package too, because `npm pack` does. */
export async function prepareTree(tree) {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-tree-'))
  try {
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: ROOT })
    await mkdir(tree, { recursive: true })
    await run('tar', ['-xzf', join(dir, stdout.trim().split('\n').at(-1)), '-C', tree, '--strip-components=1'])
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
  const { manifest, lock } = withoutDevelopment(
    await readJson(join(ROOT, 'package.json')),
    await readJson(join(ROOT, 'package-lock.json')),
  )
  await writeJson(join(tree, 'package.json'), manifest)
  await writeJson(join(tree, 'package-lock.json'), lock)
  const flags = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-fund', '--no-audit']
  await run('npm', ['ci', ...flags], { cwd: tree })
  await writeFile(join(tree, 'sbom.cdx.json'), await createSbom(tree))
}

/** Returns the bill in the CycloneDX format, without the fields that differ between two builds of the same sources. */
async function createSbom(tree) {
  const flags = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application']
  const { stdout } = await run('npm', flags, { cwd: tree, maxBuffer: OUTPUT_BYTES_MAX })
  const { serialNumber: _, ...bill } = JSON.parse(stdout)
  const { timestamp: __, ...metadata } = bill.metadata
  return `${JSON.stringify({ ...bill, metadata }, null, 2)}\n`
}

const readJson = async (file) => JSON.parse(await readFile(file, 'utf8'))
const writeJson = (file, value) => writeFile(file, `${JSON.stringify(value, null, 2)}\n`)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv[2]) throw new Error('Usage: node scripts/image/prepare-tree.mjs FOLDER')
  await prepareTree(resolve(process.argv[2]))
}
