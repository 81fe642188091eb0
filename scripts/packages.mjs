// Builds the packages for authors of provisioners into dist/packages/: @stowage/provisioner, which contains everything that it
// imports, and @stowage/create-provisioner. Their package.json, README and other files are in packages/; all packages
// have the program's version.
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { bundleOptions } from './bundle-options.mjs'
import { readLicenses } from './licenses.mjs'
import { writeTypes } from './types.mjs'

const ROOT = new URL('..', import.meta.url).pathname
const PACKAGES = join(ROOT, 'dist', 'packages')

export const PACKAGE_NAMES = ['provisioner', 'create-provisioner']

/** The pages of the documentation in @stowage/provisioner. */
const SDK_PAGES = ['docs/tutorial/provisioners.md', 'docs/reference/roles.md']

export const buildPackages = async (version) => {
  await Promise.all([buildSdk(version), buildScaffold(version)])
}

async function buildSdk(version) {
  const to = join(PACKAGES, 'provisioner')
  await copyPackage('provisioner', version)
  const [{ metafile }] = await Promise.all([
    build({
      ...bundleOptions(version),
      entryPoints: { provisioner: 'src/sdk/provisioner.ts', testing: 'src/sdk/testing.ts' },
      outdir: to,
      external: [],
      sourcemap: false,
      chunkNames: 'chunks/[name]-[hash]',
      metafile: true,
    }),
    writeTypes(join(to, 'types')),
    cp(join(ROOT, 'examples', 'provisioner'), join(to, 'examples', 'provisioner'), {
      recursive: true,
      filter: (path) => !/\/(node_modules|dist|volumes)$/.test(path),
    }),
    ...SDK_PAGES.map((page) => cp(join(ROOT, page), join(to, page))),
  ])
  await writeFile(join(to, 'LICENSES.txt'), await readLicenses(metafile))
  for (const page of SDK_PAGES) await removeOutsideLinks(join(to, page))
}

/** Replaces relative links to files outside the package with their text. */
async function removeOutsideLinks(page) {
  const text = await readFile(page, 'utf8')
  const linkOrLabel = (link, label, path) => (existsSync(join(dirname(page), path)) ? link : label)
  await writeFile(page, text.replaceAll(/\[([^\]]+)\]\((?![a-z]+:|#)([^)#]+)[^)]*\)/g, linkOrLabel))
}

async function buildScaffold(version) {
  const to = join(PACKAGES, 'create-provisioner')
  await copyPackage('create-provisioner', version)
  await build({
    ...bundleOptions(version),
    entryPoints: { create: 'src/sdk/scaffold/main.ts' },
    outdir: to,
    external: [],
    sourcemap: false,
    splitting: false,
    banner: { js: '#!/usr/bin/env node' },
  })
  await chmod(join(to, 'create.js'), 0o755)
}

/** Copies a folder of packages/ and the license, and sets the version. */
async function copyPackage(folder, version) {
  const to = join(PACKAGES, folder)
  await mkdir(to, { recursive: true })
  await cp(join(ROOT, 'packages', folder), to, { recursive: true })
  await cp(join(ROOT, 'LICENSE'), join(to, 'LICENSE'))
  const manifest = JSON.parse(await readFile(join(to, 'package.json'), 'utf8'))
  const { name, ...fields } = manifest
  await writeFile(join(to, 'package.json'), `${JSON.stringify({ name, version, ...fields }, null, 2)}\n`)
}
