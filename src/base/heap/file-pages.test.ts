import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { manualClock } from '../manual-clock.ts'
import { releaseFilePages } from './file-pages.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)

it('releases the pages of the program once after the start, and those of shared files regularly', async () => {
  const clock = manualClock()
  const released: string[] = []
  const pages = {
    releaseProgram: () => void released.push('program'),
    releaseShared: () => void released.push('shared'),
  }
  releaseFilePages({ clock, pages })
  await clock.advance(29_999)
  expect(released).toEqual([])
  await clock.advance(1)
  await clock.advance(30_000)
  expect(released).toEqual(['program', 'shared', 'shared'])
})

it.runIf(process.platform === 'linux')(
  'a process has fewer resident pages of its program after a release, and works as before (skipped on other systems than Linux)',
  async () => {
    const { beforeMb, afterMb, hash } = await runScript(`
      const beforeMb = mappedMb()
      filePages.releaseProgram()
      const afterMb = mappedMb()
      const hash = createHash('sha256').update(JSON.stringify([1, 2].map((value) => value * 2))).digest('hex')
      console.log(JSON.stringify({ beforeMb, afterMb, hash }))`)
    expect(afterMb).toBeLessThan(beforeMb - 10)
    expect(hash).toBe(createHash('sha256').update('[2,4]').digest('hex'))
  },
)

it.runIf(process.platform === 'linux')(
  'LMDB reads and writes the same values after its pages were released, also while it commits (skipped on other systems than Linux)',
  async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-pages-'))
    onTestFinished(() => rm(dir, { recursive: true, force: true }))
    const { beforeMb, afterMb, wrongCount, count } = await runScript(`
      const { open } = createRequire(${JSON.stringify(import.meta.url)})('lmdb')
      const db = open({ path: ${JSON.stringify(join(dir, 'store.mdb'))}, noSubdir: true, overlappingSync: false })
      const valueOf = (key) => String(key).repeat(400)
      let count = 0
      const put = () => db.transaction(() => {
        for (const last = count + 2_000; count < last; count++) db.put(count, valueOf(count))
      })
      const countWrong = () => [...db.getRange()].filter(({ key, value }) => value !== valueOf(key)).length
      for (let round = 0; round < 5; round++) await put()
      let wrongCount = countWrong()
      const beforeMb = mappedMb()
      filePages.releaseShared()
      const afterMb = mappedMb()
      wrongCount += countWrong()
      for (let round = 0; round < 5; round++) {
        const commit = put() // in the write thread of LMDB
        while (!(await Promise.race([commit.then(() => true), new Promise((resolve) => setImmediate(resolve))]))) filePages.releaseShared()
        wrongCount += countWrong()
      }
      wrongCount += db.getCount() - count
      await db.close()
      filePages.releaseShared()
      console.log(JSON.stringify({ beforeMb, afterMb, wrongCount, count }))`)
    expect(count).toBe(20_000)
    expect(afterMb).toBeLessThan(beforeMb - 10)
    expect(wrongCount).toBe(0)
  },
)

it('releases nothing, without failing, where /proc cannot be read', async () => {
  const { error } = await runScript(`
    fs.readFileSync = () => { throw new Error('ENOENT: no such file or directory') }
    syncBuiltinESMExports()
    filePages.releaseProgram()
    filePages.releaseShared()
    console.log(JSON.stringify({ error: null }))`)
  expect(error).toBeNull()
})

/** Runs a script in a process of its own. Returns what it prints as JSON. */
async function runScript(text: string) {
  const { outputFiles } = buildSync({
    stdin: {
      contents: `
        import { createHash } from 'node:crypto'
        import fs, { readFileSync } from 'node:fs'
        import { createRequire, syncBuiltinESMExports } from 'node:module'
        import { filePages } from './file-pages.ts'
        const mappedMb = () => {
          const status = readFileSync('/proc/self/status', 'utf8')
          const mbOf = (field) => Number(new RegExp(field + ':\\\\s+(\\\\d+)').exec(status)[1]) / 1024
          return mbOf('RssFile') + mbOf('RssShmem')
        }
        ${text}`,
      resolveDir: import.meta.dirname,
      loader: 'ts',
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['koffi'],
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
  })
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', outputFiles[0]!.text], { cwd: ROOT })
  return JSON.parse(stdout)
}
