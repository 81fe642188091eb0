import { expect, it } from 'vitest'
import { ExpiringCache } from './expiring-cache.ts'
import { manualClock } from './manual-clock.ts'

it('ExpiringCache evicts an entry that was not used for two intervals, and keeps one that was used in each interval', async () => {
  const clock = manualClock()
  const cache = new ExpiringCache<string, number>({ clock, intervalMs: 1_000, max: 100 })
  cache.set('used', 1)
  cache.set('unused', 2)
  await clock.advance(1_000)
  expect(cache.get('used')).toBe(1)
  await clock.advance(1_000)
  expect(cache.get('used')).toBe(1)
  expect(cache.get('unused')).toBeUndefined()
  await clock.advance(2_000)
  expect(cache.size).toBe(0)
})

it('ExpiringCache stops its timer when it is empty, and starts it again for the next entry', async () => {
  const clock = manualClock()
  let timers = 0
  const countingClock = {
    after(ms: number, run: () => void) {
      timers++
      return clock.after(ms, run)
    },
  }
  const cache = new ExpiringCache<string, number>({ clock: countingClock, intervalMs: 1_000, max: 100 })
  cache.set('a', 1)
  for (let seconds = 0; seconds < 10; seconds++) await clock.advance(1_000)
  expect(timers).toBe(2)
  cache.set('b', 1)
  expect(timers).toBe(3)
})

it('ExpiringCache calls onEviction after each interval, for the last time after its last entry is evicted', async () => {
  const clock = manualClock()
  const sizes: number[] = []
  const onEviction = () => void sizes.push(cache.size)
  const cache = new ExpiringCache<string, number>({ clock, intervalMs: 1_000, max: 100, onEviction })
  cache.set('a', 1)
  for (let seconds = 0; seconds < 10; seconds++) await clock.advance(1_000)
  expect(sizes).toEqual([1, 0])
})

it('ExpiringCache evicts the least recently used entries beyond its maximum weight', () => {
  const cache = new ExpiringCache<string, number>({
    clock: manualClock(),
    intervalMs: 1_000,
    max: 4,
    weightOf: (n) => n,
  })
  cache.set('a', 2)
  cache.set('b', 2)
  cache.set('c', 2)
  expect(cache.get('a')).toBeUndefined()
  expect(cache.get('c')).toBe(2)
})
