// Each script is compiled in a new process, because V8 takes a script that it has compiled before from memory, whatever its cache.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const MODULE = new URL('compiled-script.ts', import.meta.url).pathname
const COMPILE = `
  import { compileScript } from ${JSON.stringify(MODULE)}
  const { script, isFromCache } = compileScript({ file: process.argv[2], url: 'file:///program.cjs' })
  console.log(JSON.stringify({ isFromCache, result: script.runInThisContext()(20) }))`
/** Writes a cache without checksums. */
const WRITE = `
  const script = new vm.Script(fs.readFileSync(process.argv[1], 'latin1'))
  script.runInThisContext()(1)
  fs.writeFileSync(process.argv[1] + '.code', script.createCachedData())`

let dir: string
let program: string
let file: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-script-'))
  program = join(dir, 'compile.mjs')
  file = join(dir, 'script.cjs')
  const stdin = { contents: COMPILE, resolveDir: dir }
  await build({ stdin, outfile: program, bundle: true, platform: 'node', format: 'esm' })
})
beforeEach(async () => {
  for (const name of await readdir(dir)) if (name.startsWith('script')) await rm(join(dir, name))
  await writeFile(file, '(function (number) { const double = (value) => 2 * value; return double(number) + 2 })')
})
afterAll(() => rm(dir, { recursive: true }))

const compile = async () => JSON.parse((await run(process.execPath, [program, file])).stdout)
const createCode = async (flags: readonly string[] = []) => {
  await run(process.execPath, [...flags, '-e', WRITE, file])
  return readFile(`${file}.code`)
}
const cachePath = () => `${file}.${process.versions.v8}-${process.arch}.cache`
const storeCache = async (code: Buffer, text?: Buffer) => {
  const checksums = Buffer.alloc(8)
  checksums.writeUInt32LE(crc32(text ?? (await readFile(file))), 0)
  checksums.writeUInt32LE(crc32(code), 4)
  await writeFile(cachePath(), Buffer.concat([code, checksums]))
}

describe('compileScript', () => {
  it('uses the cache beside the script', async () => {
    await storeCache(await createCode())
    expect(await compile()).toEqual({ isFromCache: true, result: 42 })
  })

  it('compiles a script without a cache, and writes none', async () => {
    expect(await compile()).toEqual({ isFromCache: false, result: 42 })
    expect((await readdir(dir)).sort()).toEqual(['compile.mjs', 'script.cjs'])
  })

  it('ignores a cache that V8 rejects because it was written with other flags', async () => {
    await storeCache(await createCode(['--no-opt']))
    expect(await compile()).toEqual({ isFromCache: false, result: 42 })
  })

  it('ignores a cache of another script of the same length', async () => {
    const text = await readFile(file)
    const code = await createCode()
    await writeFile(file, text.toString().replace('+ 2 ', '+ 3 '))
    await storeCache(code, text)
    expect(await compile()).toEqual({ isFromCache: false, result: 43 })
  })

  it('ignores a damaged, truncated or empty cache', async () => {
    await storeCache(await createCode())
    const content = await readFile(cachePath())
    const damagedContent = Buffer.from(content)
    damagedContent[content.length >> 1]! ^= 1
    for (const invalid of [damagedContent, content.subarray(0, -16), content.subarray(0, 4), Buffer.alloc(0)]) {
      await writeFile(cachePath(), invalid)
      expect(await compile()).toEqual({ isFromCache: false, result: 42 })
    }
  })
})
