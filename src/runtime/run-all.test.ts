import { expect, it } from 'vitest'
import { type Runnable, withRecorders } from './run-all.ts'

it('withRecorders stops all controllers before it fails with the error of one of them', async () => {
  const stopped: string[] = []
  const running: Runnable = {
    run: (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          setImmediate(() => {
            stopped.push('controller')
            resolve()
          })
        })
      }),
  }
  const failing: Runnable = { run: async () => Promise.reject(new Error('broken')) }
  const { run } = withRecorders([running, failing], [])
  await expect(run(new AbortController().signal)).rejects.toThrow('broken')
  expect(stopped).toEqual(['controller'])
})
