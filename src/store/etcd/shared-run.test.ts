import { describe, expect, it } from 'vitest'
import { sharedRun } from './shared-run.ts'

/** A shared run whose executions the test completes through `ends`. */
function runs() {
  const ends: ((result: number | Error) => void)[] = []
  const run = sharedRun(
    () =>
      new Promise<number>((resolve, reject) => {
        ends.push((result) => (result instanceof Error ? reject(result) : resolve(result)))
      }),
  )
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { run, ends, settled }
}

describe('sharedRun', () => {
  it('serves all callers before the start of a run, and later callers with the next run', async () => {
    const { run, ends, settled } = runs()
    const early = [run(), run()]
    await settled()
    expect(ends).toHaveLength(1)
    const late = [run(), run()]
    await settled()
    expect(ends).toHaveLength(1)

    ends[0]?.(1)
    expect(await Promise.all(early)).toEqual([1, 1])
    await settled()
    expect(ends).toHaveLength(2)
    ends[1]?.(2)
    expect(await Promise.all(late)).toEqual([2, 2])
  })

  it('rejects only the callers that shared the failed run', async () => {
    const { run, ends, settled } = runs()
    const first = run()
    await settled()
    const second = run()
    ends[0]?.(new Error('oops'))
    await expect(first).rejects.toThrow('oops')
    await settled()
    ends[1]?.(2)
    expect(await second).toBe(2)
    const third = run()
    await settled()
    ends[2]?.(3)
    expect(await third).toBe(3)
  })
})
