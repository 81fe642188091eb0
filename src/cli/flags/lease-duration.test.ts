import { describe, expect, it } from 'vitest'
import { LEASE_TIMES } from '../../runtime/lease-times.ts'
import { parseLeaseDuration } from './lease-duration.ts'

describe('parseLeaseDuration', () => {
  it('SYS-8 returns the default times, or those that follow from the duration', () => {
    expect(parseLeaseDuration()).toEqual(LEASE_TIMES)
    expect(parseLeaseDuration('3s')).toEqual({ leaseMs: 3_000, renewDeadlineMs: 2_000, retryMs: 400 })
  })

  it('SYS-10 rejects values that are not a duration or shorter than 3 s', () => {
    expect(() => parseLeaseDuration('soon')).toThrow(/lease-duration "soon": expected a duration of 3s or more/)
    expect(() => parseLeaseDuration('2s')).toThrow(/3s or more/)
  })
})
