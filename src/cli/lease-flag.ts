// How soon another process takes over from a leader that is gone, for commands that elect one.
import { Option } from 'commander'
import { parseDuration } from '../base/duration.ts'
import { UsageError } from '../base/usage-error.ts'
import type { LeaseTimes } from '../runtime/leader-election.ts'

export interface LeaseFlags {
  readonly leaderElectionLeaseDuration?: string
}

const LEASE = '15s'
/** A lease says whole seconds, and a leader must get through to the server several times in one. */
const LEASE_MIN_MS = 3_000
/** As 15 s, 10 s and 2 s are to each other. */
const RENEW_DEADLINE_SHARE = 2 / 3
const RETRY_SHARE = 2 / 15

export const leaseDurationOption = (): Option =>
  new Option(
    '--leader-election-lease-duration <duration>',
    'how long others wait for a leader that is gone; it gives up itself after two thirds of that',
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
