import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)

it.skipIf(!hasGlibc())(
  'malloc_trim returns memory between buffers that stay in use (skipped without glibc)',
  async () => {
    const { outputFiles } = buildSync({
      stdin: {
        contents: `
          import { readFileSync } from 'node:fs'
          import { loadMallocTrim } from './malloc-trim.ts'
          const trim = loadMallocTrim()
          const anonymousKb = () => Number(/RssAnon:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1])
          let buffers = Array.from({ length: 40_000 }, () => Buffer.allocUnsafeSlow(1_500).fill(1))
          const keptBuffers = buffers.filter((_, index) => index % 500 === 0)
          buffers = undefined
          await gc({ type: 'major', execution: 'async' })
          await gc({ type: 'major', execution: 'async' })
          const beforeKb = anonymousKb()
          trim()
          console.log(JSON.stringify({ keptCount: keptBuffers.length, returnedKb: beforeKb - anonymousKb() }))`,
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
    const { stdout } = await run(
      process.execPath,
      ['--expose-gc', '--input-type=module', '--eval', outputFiles[0]!.text],
      { cwd: ROOT, env: { ...process.env, MALLOC_ARENA_MAX: '1' } },
    )
    const { keptCount, returnedKb } = JSON.parse(stdout)
    expect(keptCount).toBe(80)
    expect(returnedKb).toBeGreaterThan(30_000)
  },
)

function hasGlibc(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime !== undefined
}
