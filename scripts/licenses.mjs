// Returns the licenses of the npm packages in a bundle, as one text. The bundle is described by the metafile of esbuild.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = new URL('..', import.meta.url).pathname

export async function readLicenses({ outputs }) {
  const paths = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const folders = paths.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  const texts = await Promise.all([...new Set(folders)].sort().map(readLicense))
  return `This package contains code of the following packages.\n\n${texts.join('\n')}`
}

async function readLicense(folder) {
  const path = join(ROOT, folder)
  const { name, version, license } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'))
  const file = (await readdir(path)).find((entry) => /^licen[cs]e/i.test(entry))
  const text = file ? await readFile(join(path, file), 'utf8') : `License: ${license}\n`
  return `${'-'.repeat(80)}\n${name} ${version}\n\n${text}`
}
