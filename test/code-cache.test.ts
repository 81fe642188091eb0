// Checks that V8 accepts the code cache of the build with the flags of bin/stowage, and that a server starts without a cache and
// writes nothing to the directory of the program.
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { startServer } from './helpers/server.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const COMPILE = `
  import { compileScript } from './src/base/compiled-script.ts'
  console.log(compileScript({ file: process.argv[2], url: 'file:///program.cjs' }).isFromCache)`

let dir: string
let dist: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-code-cache-test-'))
  dist = dirname(await buildProgram())
})
afterAll(() => rm(dir, { recursive: true, force: true }))

const listProgram = async (folder: string) => (await readdir(join(folder, 'program'))).sort()

it('V8 accepts the code cache of the build with the flags that bin/stowage sets for servers', async () => {
  const launcher = await readFile(join(ROOT, 'bin', 'stowage'), 'utf8')
  const flags = /'server '\*\) exec node (.*) "\$program"/.exec(launcher)![1]!.split(' ')
  const compile = join(dir, 'compile.mjs')
  const stdin = { contents: COMPILE, resolveDir: ROOT }
  await build({ stdin, outfile: compile, bundle: true, platform: 'node', format: 'esm' })
  const script = (await listProgram(dist)).find((name) => name.endsWith('.cjs'))!
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, compile, join(dist, 'program', script)])
  expect(stdout).toBe('true\n')
})

it('the script contains no import(), which fails with Node.js 20 in a script with a code cache', async () => {
  const script = (await listProgram(dist)).find((name) => name.endsWith('.cjs'))!
  expect(await readFile(join(dist, 'program', script), 'latin1')).not.toMatch(/[^\w.$]import\(/)
})

it('a server starts without a code cache, and writes nothing beside the program', async () => {
  const copy = join(dir, 'dist')
  await mkdir(copy)
  await cp(join(dist, 'stowage.js'), join(copy, 'stowage.js'))
  const filter = (path: string) => !/\.(cache|map)$/.test(path)
  await cp(join(dist, 'program'), join(copy, 'program'), { recursive: true, filter })
  await cp(join(ROOT, 'package.json'), join(dir, 'package.json'))
  await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  const names = await listProgram(copy)
  expect(names).toEqual([expect.stringMatching(/\.cjs$/)])
  const server = await startServer({ dataDir: join(dir, 'data'), program: join(copy, 'stowage.js') })
  expect((await server.call('GET', '/version')).status).toBe(200)
  expect(await server.stop()).toBe(0)
  expect(await listProgram(copy)).toEqual(names)
  expect((await readdir(copy)).sort()).toEqual(['program', 'stowage.js'])
})
