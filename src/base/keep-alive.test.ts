import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { expect, it } from 'vitest'

/** Runs a module, which can import files of this folder, in its own process. Returns its exit code and output. */
async function runModule(code: string): Promise<{ code: number; out: string }> {
  const { outputFiles } = buildSync({
    stdin: { contents: code, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  const args = ['--input-type=module', '--eval', outputFiles[0]!.text]
  try {
    return { code: 0, out: (await promisify(execFile)(process.execPath, args)).stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, out: stdout }
  }
}

const WAIT = `
  import { systemClock } from './clock.ts'
  import { keepAliveUntil } from './keep-alive.ts'
  const wait = new Promise((resolve) => systemClock().after(50, resolve))
`

it('keepAliveUntil keeps the process alive until the promise settles, even if only an unreferenced timer is pending', async () => {
  expect(await runModule(`${WAIT} await wait; console.log('done')`)).toEqual({ code: 13, out: '' })
  expect(await runModule(`${WAIT} await keepAliveUntil(wait); console.log('done')`)).toEqual({ code: 0, out: 'done\n' })
  expect(await runModule(`${WAIT} await keepAliveUntil(Promise.reject(1)).catch(() => console.log('failed'))`)).toEqual(
    {
      code: 0,
      out: 'failed\n',
    },
  )
})
