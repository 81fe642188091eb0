import { describe, expect, it } from 'vitest'
import { systemClock } from './clock.ts'

describe('the system clock', () => {
  it('SYS-19 continues one waiting computation per turn of the event loop, in order', async () => {
    const clock = systemClock()
    const continued: number[] = []
    const computations = [1, 2, 3].map((number) => clock.nextTurn().then(() => continued.push(number)))
    const lengths: number[] = []
    while (continued.length < 3) {
      await new Promise((resolve) => setImmediate(resolve))
      lengths.push(continued.length)
    }
    await Promise.all(computations)
    expect(continued).toEqual([1, 2, 3])
    expect(lengths).toEqual([1, 2, 3])
  })
})
