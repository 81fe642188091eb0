import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { systemClock } from './clock.ts'

describe('the system clock', () => {
  it('continues one waiting computation per turn of the event loop, in order', async () => {
    const clock = systemClock()
    const continuedNumbers: number[] = []
    const computations = [1, 2, 3].map((number) => clock.nextTurn().then(() => continuedNumbers.push(number)))
    const lengths: number[] = []
    while (continuedNumbers.length < 3) {
      await new Promise((resolve) => setImmediate(resolve))
      lengths.push(continuedNumbers.length)
    }
    await Promise.all(computations)
    expect(continuedNumbers).toEqual([1, 2, 3])
    expect(lengths).toEqual([1, 2, 3])
  })

  it('releases the memory of canceled timers with different delays', () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage: () => void = runInNewContext('gc')
    const clock = systemClock()
    const heapMb = () => {
      collectGarbage()
      return process.memoryUsage().heapUsed / 1e6
    }
    const cancelTimers = (startMs: number) => {
      for (let i = 0; i < 100_000; i++) clock.after(startMs + i, () => {})()
    }
    cancelTimers(1e6)
    const beforeMb = heapMb()
    cancelTimers(1e7)
    expect(heapMb() - beforeMb).toBeLessThan(2) // about 9 MB if Node.js keeps an entry for each delay
  })
})
