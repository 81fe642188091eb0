import { describe, expect, it } from 'vitest'
import { shareRuns } from './shared-run.ts'

/** Creates a shared run whose executions the test completes through `ends`. */
function createSharedRun() {
  const ends: ((result: number | Error) => void)[] = []
  const run = shareRuns(
    () =>
      new Promise<number>((resolve, reject) => {
        ends.push((result) => (result instanceof Error ? reject(result) : resolve(result)))
      }),
  )
  const nextTick = () => new Promise((resolve) => setImmediate(resolve))
  return { run, ends, nextTick }
}

describe('shareRuns', () => {
  it('shares a run among the callers before its start, and the next run among later callers', async () => {
    const { run, ends, nextTick } = createSharedRun()
    const firstCallers = [run(), run()]
    await nextTick()
    expect(ends).toHaveLength(1)
    const laterCallers = [run(), run()]
    await nextTick()
    expect(ends).toHaveLength(1)

    ends[0]?.(1)
    expect(await Promise.all(firstCallers)).toEqual([1, 1])
    await nextTick()
    expect(ends).toHaveLength(2)
    ends[1]?.(2)
    expect(await Promise.all(laterCallers)).toEqual([2, 2])
  })

  it('rejects only the callers that shared the failed run', async () => {
    const { run, ends, nextTick } = createSharedRun()
    const firstCall = run()
    await nextTick()
    const secondCall = run()
    ends[0]?.(new Error('oops'))
    await expect(firstCall).rejects.toThrow('oops')
    await nextTick()
    ends[1]?.(2)
    expect(await secondCall).toBe(2)
    const thirdCall = run()
    await nextTick()
    ends[2]?.(3)
    expect(await thirdCall).toBe(3)
  })
})
