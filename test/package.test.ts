// Checks what a first `npm install` and `npm start` depend on, and the packages that are published: they are packed once, and
// used outside the repository.
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bindDirectoryClaim } from './helpers/directory-claim.ts'
import { copyRepository } from './helpers/repository-copy.ts'
import { startServer } from './helpers/server.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)
const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8'))

/** Suffices for three complete builds. */
const BUILDS_TIMEOUT_MS = 300_000

interface LockedPackage {
  readonly hasInstallScript?: boolean
}

let dir: string
let copy: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-package-'))
  copy = join(dir, 'repository')
  await copyRepository(copy)
})
afterAll(() => rm(dir, { recursive: true, force: true }))

it('package.json allows or denies every install script, so that npm prints no warning about it', async () => {
  const { packages } = (await readJson(join(ROOT, 'package-lock.json'))) as { packages: Record<string, LockedPackage> }
  const scriptedPackages = Object.entries(packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.split('node_modules/').at(-1)!)
    .filter((name) => name !== 'fsevents') // for macOS only
  const { allowScripts } = await readJson(join(ROOT, 'package.json'))
  expect(scriptedPackages).toContain('lmdb')
  expect([...new Set(scriptedPackages)].sort()).toEqual(Object.keys(allowScripts).sort())
})

describe('scripts/build.mjs', () => {
  const build = async () => {
    await run(process.execPath, [join(copy, 'scripts', 'build.mjs')])
    return (await stat(join(copy, 'dist', 'stowage.js'))).mtimeMs
  }
  /** Sets a fixed modification time, so that a restored file also has its old time. */
  const setFixedTime = (file: string) => utimes(file, 1, 1)
  const markAsOld = () => utimes(join(copy, 'dist', 'stowage.js'), 1, 1)

  it(
    'builds changed, new and generated sources, and does not rebuild an up-to-date dist/',
    async () => {
      await setFixedTime(join(copy, 'src', 'main.ts'))
      await build()
      await markAsOld()
      expect(await build()).toBe(1_000)

      await writeFile(join(copy, 'src', 'unused.ts'), '')
      expect(await build()).toBeGreaterThan(1_000)
      await markAsOld()

      const names = await readdir(join(copy, 'src'), { recursive: true })
      await utimes(join(copy, 'src', names.find((name) => /\/gen\/.*\.js$/.test(name))!), 1, 1)
      expect(await build()).toBeGreaterThan(1_000)
    },
    BUILDS_TIMEOUT_MS,
  )

  it(
    'builds again after a failed build, even if the sources are restored',
    async () => {
      const entry = join(copy, 'src', 'main.ts')
      const text = await readFile(entry, 'utf8')
      await markAsOld()
      await writeFile(entry, 'const')
      await expect(build()).rejects.toThrow('ERROR')
      await writeFile(entry, text)
      await setFixedTime(entry)
      expect(await build()).toBeGreaterThan(1_000)
    },
    BUILDS_TIMEOUT_MS,
  )
})

describe('published packages', () => {
  let tarballs: string
  let version: string
  beforeAll(async () => {
    tarballs = join(dir, 'tarballs')
    version = (await readJson(join(copy, 'package.json'))).version
    await run(process.execPath, [join(copy, 'scripts', 'pack.mjs'), tarballs], { cwd: copy })
  })

  const unpack = async (name: string, targetDir: string) => {
    await mkdir(targetDir, { recursive: true })
    await run('tar', ['-xzf', join(tarballs, `${name}-${version}.tgz`), '-C', targetDir, '--strip-components=1'])
    return targetDir
  }

  it('have one version, which the example requires too', async () => {
    expect((await readdir(tarballs)).sort()).toEqual([
      `stowage-${version}.tgz`,
      `stowage-create-provisioner-${version}.tgz`,
      `stowage-provisioner-${version}.tgz`,
    ])
    const { packages } = await readJson(join(ROOT, 'package-lock.json'))
    expect(packages['']).toMatchObject({ version })
    const example = await readJson(join(ROOT, 'examples', 'provisioner', 'package.json'))
    expect(example.dependencies).toEqual({ '@stowage/provisioner': `^${version}` })
  })

  it('contain every page that their documentation links to', async () => {
    for (const name of ['stowage', 'stowage-provisioner', 'stowage-create-provisioner']) {
      const folder = await unpack(name, join(dir, 'unpacked', name))
      const files = await readdir(folder, { recursive: true })
      expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']))
      const pages = files.filter((file) => file.endsWith('.md') && file !== 'CHANGELOG.md')
      const brokenLinks: string[] = []
      for (const page of pages) {
        const text = await readFile(join(folder, page), 'utf8')
        for (const [, path] of text.matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)/g)) {
          if (!files.includes(join(dirname(page), path!))) brokenLinks.push(`${name}/${page}: ${path}`)
        }
      }
      expect(brokenLinks).toEqual([])
    }
  })

  it('SYS-1 stowage is installed in an empty directory, serves with the heap of `npm start`, and binds a claim', async () => {
    const project = join(dir, 'project')
    await mkdir(project)
    const flags = ['--ignore-scripts', '--prefer-offline', '--no-fund', '--no-audit', '--omit=dev']
    // Without --prefix, npm would install into a parent directory that has a package.json.
    await run('npm', ['install', '--prefix', project, ...flags, join(tarballs, `stowage-${version}.tgz`)], {
      cwd: project,
    })
    const program = join(project, 'node_modules', '.bin', 'stowage')
    expect((await run(program, ['version'])).stdout).toMatch(`stowage ${version} (`)

    const server = await startServer({ dataDir: join(dir, 'data'), executable: [program] })
    try {
      expect(await readFile(`/proc/${server.pid}/cmdline`, 'utf8')).toContain('--max-semi-space-size=')
      await bindDirectoryClaim(server, 'data')
    } finally {
      expect(await server.stop()).toBe(0)
    }
  })

  it('stowage leaves the heap of other commands, and a size in NODE_OPTIONS, unchanged', async () => {
    const folder = join(dir, 'launcher')
    await mkdir(join(folder, 'dist'), { recursive: true })
    await cp(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
    await writeFile(join(folder, 'dist', 'stowage.js'), 'console.log(process.execArgv.length)')
    const countFlags = async (command: string, NODE_OPTIONS = '') =>
      (await run(join(folder, 'bin', 'stowage'), [command], { env: { ...process.env, NODE_OPTIONS } })).stdout.trim()
    expect(await countFlags('up')).toBe('1')
    expect(await countFlags('server', '--stack-trace-limit=5')).toBe('1')
    expect(await countFlags('node')).toBe('1')
    expect(await countFlags('node', '--max-semi-space-size=16')).toBe('0')
    expect(await countFlags('server', '--max-semi-space-size=16')).toBe('0')
    expect(await countFlags('sidecar')).toBe('0')
  })

  it('stowage lets glibc return memory for `up`, `server` and `node`, unless the environment sets other values', async () => {
    const folder = join(dir, 'allocator')
    await mkdir(join(folder, 'dist'), { recursive: true })
    await cp(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
    const program =
      'const { MALLOC_ARENA_MAX: a, MALLOC_MMAP_THRESHOLD_: m, MALLOC_TRIM_THRESHOLD_: t } = process.env; console.log(a, m, t)'
    await writeFile(join(folder, 'dist', 'stowage.js'), program)
    const readVariables = async (command: string, env: Record<string, string> = {}) =>
      (await run(join(folder, 'bin', 'stowage'), [command], { env: { PATH: process.env.PATH, ...env } })).stdout.trim()
    expect(await readVariables('up')).toBe('1 16384 65536')
    expect(await readVariables('server', { MALLOC_ARENA_MAX: '4' })).toBe('4 16384 65536')
    expect(await readVariables('node')).toBe('1 16384 65536')
    expect(await readVariables('sidecar')).toBe('undefined undefined undefined')
  })

  it('PROV-17 create-provisioner creates a project that compiles and passes its test with the packed SDK', async () => {
    const scaffold = await unpack('stowage-create-provisioner', join(dir, 'scaffold'))
    const project = join(dir, 'disks')
    await run(process.execPath, [join(scaffold, 'create.js'), project, '--name', 'storage.example.org/disks'])
    const modules = join(project, 'node_modules')
    await unpack('stowage-provisioner', join(modules, '@stowage', 'provisioner'))
    await mkdir(join(modules, '@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types', 'typescript']) {
      await symlink(join(ROOT, 'node_modules', name), join(modules, name))
    }
    const { dependencies, scripts } = await readJson(join(project, 'package.json'))
    expect(dependencies).toEqual({ '@stowage/provisioner': `^${version}` })
    expect(scripts.test).toBe('tsc && node --test dist/provisioner.test.js')
    await run(process.execPath, [join(modules, 'typescript', 'bin', 'tsc')], { cwd: project })
    const reporter = '--test-reporter=tap'
    const { stdout } = await run(process.execPath, ['--test', reporter, 'dist/provisioner.test.js'], { cwd: project })
    expect(stdout).toMatch(/# pass [1-9]/)
    const { stdout: help } = await run(process.execPath, ['dist/main.js', '--help'], { cwd: project })
    expect(help).toContain('The provisioner storage.example.org/disks.')
  })

  it('PROV-17 create-provisioner exits with 2 and a message for wrong arguments', async () => {
    const scaffold = await unpack('stowage-create-provisioner', join(dir, 'wrong-arguments'))
    const create = (...args: string[]) => run(process.execPath, [join(scaffold, 'create.js'), ...args], { cwd: dir })
    expect((await create('--help')).stdout).toContain('Usage: npm create @stowage/provisioner DIRECTORY')
    for (const args of [[], ['a', 'b'], ['a', '--colour'], ['a', '--name', 'nodomain']]) {
      await expect(create(...args)).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^create-provisioner: /),
      })
    }
  })
})
