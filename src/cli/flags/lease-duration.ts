// --leader-election-lease-duration: how soon another process takes over from a leader that has stopped.
import { Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { LeaseTimes } from '../../runtime/leader-election.ts'

export interface LeaseFlags {
  readonly leaderElectionLeaseDuration?: string
}

const LEASE = '15s'
/** A Lease counts whole seconds, and the leader needs time for several renewals. */
const LEASE_MIN_MS = 3_000
/** The ratios of the defaults in Kubernetes: 15 s, 10 s and 2 s. */
const RENEW_DEADLINE_SHARE = 2 / 3
const RETRY_SHARE = 2 / 15

export const leaseDurationOption = (): Option =>
  new Option(
    '--leader-election-lease-duration <duration>',
    'how long others wait for a leader that does not renew its lease; the leader itself stops after two thirds of that',
  ).default(LEASE)

export function parseLeaseDuration(text = LEASE): LeaseTimes {
  const leaseMs = parseDuration(text)
  if (leaseMs === undefined || leaseMs < LEASE_MIN_MS) {
    throw new UsageError(
      `--leader-election-lease-duration ${JSON.stringify(text)}: expected a duration of 3s or more, such as 15s`,
    )
  }
  return { leaseMs, renewDeadlineMs: leaseMs * RENEW_DEADLINE_SHARE, retryMs: leaseMs * RETRY_SHARE }
}
