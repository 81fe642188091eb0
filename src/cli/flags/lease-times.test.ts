import { describe, expect, it } from 'vitest'
import { LEASE_TIMES } from '../../runtime/lease-times.ts'
import { parseLeaseTimes } from './lease-times.ts'

describe('parseLeaseTimes', () => {
  it('returns the default times, and derives the other times from a duration', () => {
    expect(parseLeaseTimes()).toEqual(LEASE_TIMES)
    expect(parseLeaseTimes({ leaderElectionLeaseDuration: '3s' })).toEqual({
      leaseMs: 3_000,
      renewDeadlineMs: 2_000,
      retryMs: 400,
    })
  })

  it('takes the renew deadline and the retry period from flags', () => {
    const flags = {
      leaderElectionLeaseDuration: '15s',
      leaderElectionRenewDeadline: '12s',
      leaderElectionRetryPeriod: '500ms',
    }
    expect(parseLeaseTimes(flags)).toEqual({ leaseMs: 15_000, renewDeadlineMs: 12_000, retryMs: 500 })
  })

  it('rejects values that are not a duration, or a lease shorter than 3 s', () => {
    const duration = (leaderElectionLeaseDuration: string) => () => parseLeaseTimes({ leaderElectionLeaseDuration })
    expect(duration('soon')).toThrow(/lease-duration "soon": expected a duration of 3s or more/)
    expect(duration('2s')).toThrow(/3s or more/)
    expect(() => parseLeaseTimes({ leaderElectionRetryPeriod: 'often' })).toThrow(
      '--leader-election-retry-period "often": expected a duration above zero',
    )
    expect(() => parseLeaseTimes({ leaderElectionRenewDeadline: '0s' })).toThrow(
      '--leader-election-renew-deadline "0s": expected a duration above zero',
    )
  })

  it('rejects times that would allow two leaders or leave no time for a renewal', () => {
    expect(() => parseLeaseTimes({ leaderElectionRenewDeadline: '6s' })).toThrow(
      'the lease must be longer than the deadline',
    )
    expect(() => parseLeaseTimes({ leaderElectionRetryPeriod: '4s' })).toThrow('the deadline longer than 1.2 times')
  })
})
