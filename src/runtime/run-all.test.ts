import { expect, it } from 'vitest'
import { type Runnable, runAll, withRecorders } from './run-all.ts'

it('withRecorders stops all controllers before it rejects with the error of one of them', async () => {
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

it('runAll stops the running controllers before it rejects with the error that another one throws at its start', async () => {
  let stoppedCount = 0
  const runningController: Runnable = {
    run: (signal) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          stoppedCount++
          resolve()
        }),
      ),
  }
  const throwingController: Runnable = {
    run() {
      throw new Error('broken')
    },
  }
  const { signal } = new AbortController()
  await expect(runAll([runningController, throwingController, runningController], signal)).rejects.toThrow('broken')
  expect(stoppedCount).toBe(2)
})
