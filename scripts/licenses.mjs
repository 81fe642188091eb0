// Returns the licenses of the npm packages in a bundle of esbuild, as one text.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = new URL('..', import.meta.url).pathname

export async function readLicenses({ outputs }) {
  const inputs = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const folders = inputs.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  const texts = await Promise.all([...new Set(folders)].sort().map(readLicense))
  return `This package contains code of the following packages.\n\n${texts.join('\n')}`
}

async function readLicense(folder) {
  const path = join(ROOT, folder)
  const { name, version, license } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'))
  const file = (await readdir(path)).find((name) => /^licen[cs]e/i.test(name))
  const text = file ? await readFile(join(path, file), 'utf8') : `License: ${license}\n`
  return `${'-'.repeat(80)}\n${name} ${version}\n\n${text}`
}
