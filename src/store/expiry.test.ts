import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExpiryQueue } from './expiry.ts'
import type { Version } from './version.ts'

const aVersion = (key: string, expiresAtMs: number): Version => ({
  key,
  revision: 1,
  createRevision: 1,
  expiresAtMs,
  isDeleted: false,
  checksum: 0,
  valueBytes: 0,
  previous: undefined,
})

describe('ExpiryQueue', () => {
  it('returns expired versions, earliest first, and skips superseded ones', () => {
    const time = fc.nat({ max: 1_000 })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat({ max: 50 }), time), { maxLength: 4_000, size: 'max' }),
        time,
        (puts, nowMs) => {
          const newest = new Map<string, Version>()
          const queue = new ExpiryQueue({ isNewest: (version) => newest.get(version.key) === version })
          for (const [key, expiresAtMs] of puts) {
            const version = aVersion(String(key), expiresAtMs)
            newest.set(version.key, version)
            queue.add(version)
          }
          const expiryTimes = [...newest.values()].map((version) => version.expiresAtMs as number).sort((a, b) => a - b)
          expect(queue.nextMs()).toBe(expiryTimes[0])
          const expiredTimes = queue.takeDue({ nowMs, max: 10_000 }).map((version) => version.expiresAtMs)
          expect(expiredTimes).toEqual(expiryTimes.filter((ms) => ms <= nowMs))
          expect(queue.nextMs()).toBe(expiryTimes[expiredTimes.length])
        },
      ),
    )
  })

  it('returns at most `max` versions', () => {
    const queue = new ExpiryQueue({ isNewest: () => true })
    for (const key of ['a', 'b', 'c']) queue.add(aVersion(key, 5))
    expect(queue.takeDue({ nowMs: 4, max: 2 })).toHaveLength(0)
    expect(queue.takeDue({ nowMs: 5, max: 2 })).toHaveLength(2)
    expect(queue.takeDue({ nowMs: 5, max: 2 })).toHaveLength(1)
  })
})
