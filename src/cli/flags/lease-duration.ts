// The flag --leader-election-lease-duration: how soon another process replaces a leader that does not renew its lease.
import { Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { LeaseTimes } from '../../runtime/leader-election.ts'

export interface LeaseFlags {
  readonly leaderElectionLeaseDuration?: string
}

const DEFAULT_LEASE_DURATION = '6s'
/** A Lease has a resolution of one second, and the leader needs time for several renewals. */
const LEASE_MS_MIN = 3_000
/** The ratios of the defaults in Kubernetes: 15 s, 10 s and 2 s. */
const RENEW_DEADLINE_RATIO = 2 / 3
const RETRY_RATIO = 2 / 15

export const leaseDurationOption = (): Option =>
  new Option(
    '--leader-election-lease-duration <duration>',
    'how long candidates wait before they replace a leader that does not renew its lease; the leader stops after two thirds of this time',
  ).default(DEFAULT_LEASE_DURATION)

export function parseLeaseDuration(text = DEFAULT_LEASE_DURATION): LeaseTimes {
  const leaseMs = parseDuration(text)
  if (leaseMs === undefined || leaseMs < LEASE_MS_MIN) {
    throw new UsageError(
      `--leader-election-lease-duration ${JSON.stringify(text)}: expected a duration of 3s or more, such as 6s`,
    )
  }
  return { leaseMs, renewDeadlineMs: leaseMs * RENEW_DEADLINE_RATIO, retryMs: leaseMs * RETRY_RATIO }
}
