// Keeps a process from leading while other programs that do the same work hold their leases: for example the leases of the
// upstream sidecars that it replaces. It reads those leases and never writes them, so a program that starts later is noticed
// at the next check, and both may lead until then. A process that must prevent this holds the leases itself (holdAll in
// leader-election.ts).
import { leaseKind } from '../api/kinds/lease/lease.ts'
import type { Lease } from '../api/kinds/lease/lease-schema.ts'
import type { Clock } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client } from '../client/client.ts'
import { find } from '../client/find.ts'
import { type LeaderElection, NotLeaderError } from './leader-election.ts'

export interface LeaseGuardOptions {
  readonly client: Client
  readonly clock: Clock
  readonly log?: Logger
  readonly namespace: string
  /** The leases of the other programs. */
  readonly names: readonly string[]
  /** The time between two checks while leading. A lease has expired if it is unchanged for this time and for its duration. */
  readonly leaseMs: number
  /** The time between two checks while another program holds a lease. */
  readonly retryMs: number
}

/** A lease that was renewed longer ago than this, by the wall clock, has expired. Clocks of processes must differ by less. */
const RENEWAL_AGE_MS_MAX = 300_000

interface HeldLease {
  readonly lease: string
  readonly holder: string
}

export function createLeaseGuard(options: LeaseGuardOptions): LeaderElection {
  const { client, clock, log = silentLog, namespace, names, leaseMs, retryMs } = options
  /** By name: the last record of a held lease, and the time since which it has been unchanged. */
  const observations = new Map<string, { readonly record: string; readonly sinceMs: number }>()
  let isLeader = false
  let heldLease: HeldLease | undefined
  /** The last holder or error that was logged. Repetitions are not logged. */
  let loggedReason = ''

  async function findHeldLease(signal: AbortSignal): Promise<HeldLease | undefined> {
    for (const name of names) {
      const lease = await find(client, leaseKind, { namespace, name }, { signal })
      const holder = lease?.spec?.holderIdentity
      if (lease && holder && isRenewed(name, lease)) return { lease: `${namespace}/${name}`, holder }
    }
    return undefined
  }

  /** Returns false if the lease has expired. */
  function isRenewed(name: string, { spec = {} }: Readonly<Lease>): boolean {
    const { renewTime, leaseDurationSeconds = 0 } = spec
    if (renewTime && clock.nowMs() - Date.parse(renewTime) > RENEWAL_AGE_MS_MAX) return false
    const record = JSON.stringify([spec.holderIdentity, renewTime, spec.leaseTransitions])
    const nowMs = clock.monotonicMs()
    const observation = observations.get(name)
    if (observation?.record !== record) {
      observations.set(name, { record, sinceMs: nowMs })
      return true
    }
    return nowMs - observation.sinceMs < Math.max(leaseMs, leaseDurationSeconds * 1_000)
  }

  /** Returns whether this process may lead. If the leases cannot be read, it may not start to lead, but may continue. */
  async function check(signal: AbortSignal): Promise<boolean> {
    try {
      heldLease = await findHeldLease(signal)
      const reason = heldLease ? `${heldLease.lease} ${heldLease.holder}` : ''
      if (heldLease && reason !== loggedReason) {
        log.warn(heldLease, 'refusing to lead: another program that does the same work holds its lease')
      }
      loggedReason = reason
      return !heldLease
    } catch (error) {
      if (signal.aborted) return isLeader
      const message = error instanceof Error ? error.message : String(error)
      if (message !== loggedReason) log.warn({ err: error }, 'cannot read the leases of other programs; retrying')
      loggedReason = message
      return isLeader
    }
  }

  async function leadUntilLeaseHeld(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const term = new AbortController()
    const stop = () => term.abort()
    signal.addEventListener('abort', stop, { once: true })
    isLeader = true
    const leadRun = lead(term.signal).finally(stop)
    leadRun.catch(() => {}) // a rejection during a check is thrown below
    try {
      while (!term.signal.aborted) {
        await clock.sleep(leaseMs, term.signal).catch(() => {})
        if (!term.signal.aborted && !(await check(term.signal))) stop()
      }
    } finally {
      isLeader = false
      signal.removeEventListener('abort', stop)
      await leadRun
    }
  }

  function assertStillLeader(): void {
    if (isLeader) return
    throw new NotLeaderError(`${heldLease?.holder ?? 'another program'} holds ${heldLease?.lease ?? 'its lease'}`)
  }

  return {
    get isLeader() {
      return isLeader
    },
    get holder() {
      return heldLease?.holder ?? ''
    },
    assertStillLeader,
    fence: () => [],
    leaseFences() {
      assertStillLeader()
      return []
    },
    async run(lead, signal) {
      while (!signal.aborted) {
        if (await check(signal)) await leadUntilLeaseHeld(lead, signal)
        else await clock.sleep(retryMs, signal).catch(() => {})
      }
    },
  }
}
