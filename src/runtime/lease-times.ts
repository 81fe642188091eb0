// The times of a lease, and the rule for them: two processes must not lead at the same time, and the leader must have
// time to renew its lease.

export interface LeaseTimes {
  /** The time that other processes wait after the last renewal that they observed. */
  readonly leaseMs: number
  /** The time that the leader leads after it sent its last successful renewal. */
  readonly renewDeadlineMs: number
  /** The shortest delay between two attempts to acquire or renew the lease. */
  readonly retryMs: number
}

/**
 * The default times. A standby process acquires a released lease within one second, and the lease of a killed leader within
 * eight seconds: it observes the last renewal at most one retry delay late, waits for `leaseMs`, and then acquires the lease at
 * its next attempt.
 */
export const LEASE_TIMES: LeaseTimes = { leaseMs: 6_000, renewDeadlineMs: 4_000, retryMs: 800 }

/** The delay before the next attempt is at most this many times `retryMs`. */
export const RETRY_JITTER = 1.2

/** Returns a message if the times would allow two leaders or leave no time for a renewal, otherwise undefined. */
export function checkLeaseTimes({ leaseMs, renewDeadlineMs, retryMs }: LeaseTimes): string | undefined {
  if (leaseMs > renewDeadlineMs && renewDeadlineMs > retryMs * RETRY_JITTER) return undefined
  return (
    `Cannot elect a leader with a lease of ${leaseMs} ms, a renewal deadline of ${renewDeadlineMs} ms and retries every ` +
    `${retryMs} ms: the lease must be longer than the deadline, and the deadline longer than ${RETRY_JITTER} times the retry interval.`
  )
}
