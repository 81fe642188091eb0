// The flags for the times of a lease: how soon another process replaces a leader that does not renew it.
import { Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { LeaseTimes } from '../../runtime/leader-election.ts'
import { checkLeaseTimes } from '../../runtime/lease-times.ts'

export interface LeaseFlags {
  readonly leaderElectionLeaseDuration?: string
  readonly leaderElectionRenewDeadline?: string
  readonly leaderElectionRetryPeriod?: string
}

const DEFAULT_LEASE_DURATION = '6s'
/** The field leaseDurationSeconds has a resolution of one second, and the leader needs time for several renewals. */
const LEASE_MS_MIN = 3_000
/** The ratios of the defaults in Kubernetes: 15 s, 10 s and 2 s. */
const RENEW_DEADLINE_RATIO = 2 / 3
const RETRY_RATIO = 2 / 15

export const leaseTimeOptions = (): readonly Option[] => [
  new Option(
    '--leader-election-lease-duration <duration>',
    'how long candidates wait before they replace a leader that does not renew its lease',
  ).default(DEFAULT_LEASE_DURATION),
  new Option(
    '--leader-election-renew-deadline <duration>',
    'how long the leader tries to renew its lease before it gives up leadership (default: two thirds of the lease duration)',
  ),
  new Option(
    '--leader-election-retry-period <duration>',
    'time between two attempts to acquire or renew the lease (default: two fifteenths of the lease duration)',
  ),
]

/** Throws if the times would allow two leaders or leave no time for a renewal. */
export function parseLeaseTimes(flags: LeaseFlags = {}): LeaseTimes {
  const { leaderElectionLeaseDuration = DEFAULT_LEASE_DURATION } = flags
  const { leaderElectionRenewDeadline, leaderElectionRetryPeriod } = flags
  const leaseMs = parseDuration(leaderElectionLeaseDuration)
  if (leaseMs === undefined || leaseMs < LEASE_MS_MIN) {
    throw new UsageError(
      `--leader-election-lease-duration ${JSON.stringify(leaderElectionLeaseDuration)}: expected a duration of 3s or more, such as 6s`,
    )
  }
  const times = {
    leaseMs,
    renewDeadlineMs:
      parseOptional('--leader-election-renew-deadline', leaderElectionRenewDeadline) ?? leaseMs * RENEW_DEADLINE_RATIO,
    retryMs: parseOptional('--leader-election-retry-period', leaderElectionRetryPeriod) ?? leaseMs * RETRY_RATIO,
  }
  const problem = checkLeaseTimes(times)
  if (problem) throw new UsageError(problem)
  return times
}

function parseOptional(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const durationMs = parseDuration(text)
  if (durationMs === undefined || durationMs <= 0) {
    throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a duration above zero, such as 4s`)
  }
  return durationMs
}
