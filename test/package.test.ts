// Checks what a first `npm install` and `npm start` depend on: install scripts are declared, and a build happens only if a
// source has changed.
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const readJson = async (name: string) => JSON.parse(await readFile(join(ROOT, name), 'utf8'))

interface LockedPackage {
  readonly hasInstallScript?: boolean
}

it('SYS-1 package.json allows or denies every install script, so that npm prints no warning about it', async () => {
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, LockedPackage> }
  const withScripts = Object.entries(packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.split('node_modules/').at(-1)!)
    .filter((name) => name !== 'fsevents') // for macOS only
  const { allowScripts } = await readJson('package.json')
  expect(withScripts).toContain('lmdb')
  expect([...new Set(withScripts)].sort()).toEqual(Object.keys(allowScripts).sort())
})

describe('scripts/build.mjs', () => {
  let copy: string
  afterAll(() => rm(copy, { recursive: true, force: true }))

  it('SYS-1 builds a changed source, and leaves an up-to-date dist/ alone', async () => {
    copy = await mkdtemp(join(tmpdir(), 'stowage-build-'))
    for (const name of ['src', 'bench', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json', 'test']) {
      await cp(join(ROOT, name), join(copy, name), { recursive: true })
    }
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const program = join(copy, 'dist', 'stowage.js')
    const build = async () => {
      await promisify(execFile)(process.execPath, [join(copy, 'scripts', 'build.mjs')])
      return (await stat(program)).mtimeMs
    }
    await build()
    await utimes(program, 1, 1)
    expect(await build()).toBe(1_000)

    const entry = join(copy, 'src', 'main.ts')
    await writeFile(entry, `${await readFile(entry, 'utf8')}\nexport const changed = true\n`)
    expect(await build()).toBeGreaterThan(1_000)
    await utimes(program, 1, 1)

    await writeFile(join(copy, 'src', 'unused.ts'), '')
    expect(await build()).toBeGreaterThan(1_000)
  })
})
