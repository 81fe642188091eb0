import { describe, expect, it } from 'vitest'
import { createVirtualClock } from './virtual-clock.ts'

const signal = new AbortController().signal

describe('virtual clock', () => {
  it('jumps to the next timer', async () => {
    const clock = createVirtualClock({ signal })
    const firedMs: number[] = []
    clock.after(3_600_000, () => firedMs.push(clock.monotonicMs()))
    clock.after(1_000, () => firedMs.push(clock.monotonicMs()))
    expect(await clock.runUntil(() => firedMs.length === 2, 3_600_000)).toBe(true)
    expect(firedMs).toEqual([1_000, 3_600_000])
  })

  it('stops while real work is in progress', async () => {
    const clock = createVirtualClock({ signal })
    let isTimedOut = false
    clock.after(10, () => {
      isTimedOut = true
    })
    let finish = () => {}
    const work = clock.hold(
      new Promise<void>((resolve) => {
        finish = resolve
      }),
    )
    const run = clock.runUntil(() => isTimedOut, 1_000)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isTimedOut).toBe(false)
    finish()
    await work
    expect(await run).toBe(true)
  })

  it('ends after the given time, or when the signal is aborted', async () => {
    const clock = createVirtualClock({ signal })
    clock.after(2_000, () => {})
    expect(await clock.runUntil(() => false, 1_000)).toBe(false)
    const aborted = createVirtualClock({ signal: AbortSignal.abort(new Error('stopped')) })
    await expect(aborted.runUntil(() => false, 1_000)).rejects.toThrow('stopped')
  })
})
