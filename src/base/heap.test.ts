import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { COMPACTION_FLAG, collectGarbageWhenIdle, HEAP_GROWTH_FLAG } from './heap.ts'
import { manualClock } from './manual-clock.ts'

it.each([HEAP_GROWTH_FLAG, COMPACTION_FLAG])('SYS-20 the flag %s exists in this release of Node.js', (flag) => {
  expect(execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })).toContain(`${flag} `)
})

describe('collectGarbageWhenIdle', () => {
  it('SYS-20 collects after each busy period, and never while the process is busy', async () => {
    const clock = manualClock()
    const shares = [0.01, 0.5, 0.08, 0.02, 0.01, 0.9, 0.04]
    const collections: number[] = []
    let checks = 0
    collectGarbageWhenIdle({ clock, utilization: () => shares[checks++]!, collect: () => collections.push(checks) })
    for (const _ of shares) await clock.advance(30_000)
    expect(checks).toBe(shares.length)
    expect(collections).toEqual([4, 7])
  })

  it('SYS-20 collects once more, with compaction, after a longer idle period', async () => {
    const clock = manualClock()
    const shares = [0.5]
    let checks = 0
    const collections: boolean[] = []
    const collect = (isCompacting: boolean) => void collections.push(isCompacting)
    collectGarbageWhenIdle({ clock, utilization: () => shares[checks++] ?? 0, collect })
    await clock.advance(2 * 30_000)
    expect(collections).toEqual([false])
    for (let minute = 0; minute < 60; minute++) await clock.advance(60_000)
    expect(collections).toEqual([false, true])
  })

  it('SYS-20 releases the objects of a busy period', async () => {
    const shares = [1, 0]
    const clock = manualClock()
    let objects: object[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index }))
    const released = new WeakRef(objects)
    objects = undefined
    collectGarbageWhenIdle({ clock, utilization: () => shares.shift() ?? 0 })
    await clock.advance(60_000)
    await expect.poll(() => released.deref()).toBeUndefined()
  })
})
