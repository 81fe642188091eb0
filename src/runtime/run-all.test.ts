import { expect, it } from 'vitest'
import { type Runnable, withRecorders } from './run-all.ts'

it('withRecorders stops all controllers before it fails with the error of one of them', async () => {
  const stoppedRunnables: string[] = []
  const runningController: Runnable = {
    run: (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          setImmediate(() => {
            stoppedRunnables.push('controller')
            resolve()
          })
        })
      }),
  }
  const failingController: Runnable = { run: async () => Promise.reject(new Error('broken')) }
  const { run } = withRecorders([runningController, failingController], [])
  await expect(run(new AbortController().signal)).rejects.toThrow('broken')
  expect(stoppedRunnables).toEqual(['controller'])
})
