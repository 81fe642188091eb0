// Elects one leader with a Lease object. The holder renews it every few seconds. Another process acquires it after it has
// observed the same record unchanged for the whole lease duration, by its own monotonic clock.
//
// Two processes do not lead at the same time, unless the lease is deleted: leadership ends `renewDeadlineMs` after the leader
// *sent* its last successful renewal, and another process acquires a lease that was not released at the earliest `leaseMs`
// after it *observed* that renewal. The difference is the tolerated clock drift. If commits are atomic, the fence rejects
// requests of a former leader that arrive after another process has acquired the lease.
import { leaseKind } from '../api/kinds/lease/lease.ts'
import type { LeaseFence } from '../api/kinds/lease/lease-fence.ts'
import type { Lease } from '../api/kinds/lease/lease-schema.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import { microTimestamp } from '../base/timestamps.ts'
import type { Client, CommitWrite } from '../client/client.ts'
import { find } from '../client/find.ts'
import { checkLeaseTimes, LEASE_TIMES, type LeaseTimes, RETRY_JITTER } from './lease-times.ts'

export type { LeaseTimes } from './lease-times.ts'

export interface LeaderElectionOptions extends Partial<LeaseTimes> {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  readonly namespace: string
  readonly name: string
  /** Labels that the leader puts on the lease. */
  readonly labels?: Readonly<Record<string, string>>
  /** Unique for every start of a process, e.g. `host_uuid`. */
  readonly identity: string
  /** Called with false at the start, and when leadership starts and ends. */
  onChange?(isLeader: boolean): void
}

export interface LeaderElection {
  /** Whether this process leads at this moment. */
  readonly isLeader: boolean
  /** The holder when the lease was last read or written. */
  readonly holder: string
  /** Throws NotLeaderError if this process does not lead. Call it right before every effect outside the API server. */
  assertStillLeader(): void
  /** Returns the conditions of a write: this process holds the lease in this term. Throws NotLeaderError if it does not lead. */
  leaseFences(): readonly LeaseFence[]
  /**
   * Returns writes that change nothing, and fail the commit if another process holds the lease. Throws NotLeaderError if this
   * process does not lead.
   */
  fence(): readonly CommitWrite[]
  /** Runs `lead` in every term as leader, with a signal for the end of the term, until `signal` is aborted. */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

export class NotLeaderError extends Error {
  override readonly name = 'NotLeaderError'
}

export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { client, clock, random, log = silentLog, namespace, name, labels, identity } = options
  const { leaseMs = LEASE_TIMES.leaseMs, renewDeadlineMs = LEASE_TIMES.renewDeadlineMs } = options
  const { retryMs = LEASE_TIMES.retryMs } = options
  const problem = checkLeaseTimes({ leaseMs, renewDeadlineMs, retryMs })
  if (problem) throw new Error(problem)
  const ref = { namespace, name }
  /** The lease when it was last read, and the time since which it has been unchanged. */
  let observation: { lease: Readonly<Lease>; record: string; sinceMs: number } | undefined
  /** Monotonic time of the end of leadership. In the past if this process does not lead. */
  let leaderUntilMs = Number.NEGATIVE_INFINITY
  let transitions = 0
  /** The last holder or error. Its repetitions are logged at level debug or not at all. */
  let loggedReason = ''

  const isLeader = () => clock.monotonicMs() < leaderUntilMs

  function observe(lease: Readonly<Lease>): void {
    const { holderIdentity, renewTime, acquireTime, leaseTransitions } = lease.spec ?? {}
    const record = JSON.stringify([
      holderIdentity,
      renewTime,
      acquireTime,
      leaseTransitions,
      lease.metadata.resourceVersion,
    ])
    if (observation?.record === record) observation = { ...observation, lease }
    else observation = { lease, record, sinceMs: clock.monotonicMs() }
  }

  /** Tries once to acquire or renew the lease. The leader first tries to renew the lease as it last observed it. */
  async function acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    if (isLeader() && observation && (await renewObserved(observation.lease, signal))) return true
    const sentMs = clock.monotonicMs()
    const renewal = renewedSpec()
    const currentLease = await readLease(signal)
    if (!currentLease) {
      const spec = { ...renewal, acquireTime: renewal.renewTime, leaseTransitions: 0 }
      recordRenewal(await client.create(leaseKind, { metadata: { ...ref, labels }, spec }, { signal }), sentMs)
      return true
    }
    observe(currentLease)
    const spec = currentLease.spec ?? {}
    const isHolder = spec.holderIdentity === identity
    if (!isHolder && spec.holderIdentity) {
      const holderLeaseMs = Math.max(leaseMs, (spec.leaseDurationSeconds ?? 0) * 1_000)
      if (clock.monotonicMs() - observation!.sinceMs < holderLeaseMs) return false
    }
    const transition = isHolder
      ? {}
      : { acquireTime: renewal.renewTime, leaseTransitions: (spec.leaseTransitions ?? 0) + 1 }
    // Conditional on the resourceVersion that was read, so that only one of two concurrent attempts succeeds.
    const metadata = labels
      ? { ...currentLease.metadata, labels: { ...currentLease.metadata.labels, ...labels } }
      : currentLease.metadata
    recordRenewal(
      await client.update(
        leaseKind,
        { ...currentLease, metadata, spec: { ...spec, ...transition, ...renewal } },
        { signal },
      ),
      sentMs,
    )
    return true
  }

  /** Returns false if another process holds the lease, or if the lease was changed or deleted since it was read. */
  async function renewObserved(lease: Readonly<Lease>, signal: AbortSignal): Promise<boolean> {
    const sentMs = clock.monotonicMs()
    if (lease.spec?.holderIdentity !== identity) return false
    try {
      recordRenewal(
        await client.update(leaseKind, { ...lease, spec: { ...lease.spec, ...renewedSpec() } }, { signal }),
        sentMs,
      )
      return true
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return false
      throw error
    }
  }

  const renewedSpec = () => ({
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    renewTime: microTimestamp(clock.nowMs()),
  })

  const readLease = (signal: AbortSignal) => find(client, leaseKind, ref, { signal })

  function recordRenewal(lease: Readonly<Lease>, sentMs: number): void {
    observe(lease)
    transitions = lease.spec?.leaseTransitions ?? 0
    leaderUntilMs = Math.max(leaderUntilMs, sentMs + renewDeadlineMs)
  }

  async function attempt(signal: AbortSignal): Promise<boolean> {
    const lease = `${namespace}/${name}`
    try {
      const isHeld = await acquireOrRenew(signal)
      const holder = isHeld ? '' : (observation?.lease.spec?.holderIdentity ?? '')
      if (holder !== '' && holder !== loggedReason) {
        log.info({ lease, holder }, 'standing by: another process holds the lease')
      }
      loggedReason = holder
      return isHeld
    } catch (error) {
      if (signal.aborted) return false
      const message = error instanceof Error ? error.message : String(error)
      const level = message === loggedReason || isConflict(error) ? 'debug' : 'warn'
      log[level]({ err: error, lease }, 'cannot acquire or renew the lease; retrying')
      loggedReason = message
      return false
    }
  }

  const pause = (signal: AbortSignal) =>
    clock.sleep(retryMs * (1 + random() * (RETRY_JITTER - 1)), signal).catch(() => {})

  async function run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    options.onChange?.(false)
    while (!signal.aborted) {
      if (!(await attempt(signal)) || !isLeader()) {
        await pause(signal)
        continue
      }
      // Wait after failed work before the next attempt to acquire the lease.
      if ((await leadWhileRenewing(lead, signal)) === 'failed') await pause(signal)
    }
  }

  async function leadWhileRenewing(
    lead: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<'ended' | 'failed'> {
    let result: 'ended' | 'failed' = 'ended'
    const term = new AbortController()
    const stop = () => term.abort()
    signal.addEventListener('abort', stop, { once: true })
    term.signal.addEventListener('abort', () => options.onChange?.(false), { once: true })
    options.onChange?.(true)
    log.info({ lease: `${namespace}/${name}`, identity }, 'leading')
    const leadRun = lead(term.signal).catch((error) => {
      log.error({ err: error }, "the leader's controllers failed")
      result = 'failed'
      term.abort()
    })
    try {
      let cancelDeadline = () => {}
      while (!term.signal.aborted) {
        cancelDeadline()
        cancelDeadline = clock.after(leaderUntilMs - clock.monotonicMs(), stop) // even while a renewal hangs
        await pause(term.signal)
        if (!term.signal.aborted) await attempt(term.signal)
        if (!isLeader()) term.abort()
      }
      cancelDeadline()
      await leadRun // this work must not overlap with that of the next leader
    } finally {
      signal.removeEventListener('abort', stop)
    }
    if (isLeader()) await release()
    else
      log.warn({ lease: `${namespace}/${name}`, identity }, 'leadership lost: the lease could not be renewed in time')
    leaderUntilMs = Number.NEGATIVE_INFINITY
    return result
  }

  /** Releases the lease. The next leader then does not wait until it expires. */
  async function release(): Promise<void> {
    leaderUntilMs = Number.NEGATIVE_INFINITY
    try {
      const currentLease = await client.get(leaseKind, ref)
      if (currentLease.spec?.holderIdentity !== identity) return
      const spec = {
        ...currentLease.spec,
        holderIdentity: '',
        leaseDurationSeconds: 1,
        renewTime: microTimestamp(clock.nowMs()),
      }
      await client.update(leaseKind, { ...currentLease, spec })
    } catch (error) {
      log.info({ err: error, lease: `${namespace}/${name}` }, 'cannot release the lease; it expires later')
    }
  }

  function assertStillLeader(): void {
    if (isLeader()) return
    throw new NotLeaderError(`${identity} no longer leads ${namespace}/${name}: its lease was not renewed in time`)
  }

  return {
    get isLeader() {
      return isLeader()
    },
    get holder() {
      return observation?.lease.spec?.holderIdentity ?? ''
    },
    assertStillLeader,
    fence() {
      assertStillLeader()
      const body = [
        { op: 'test', path: '/spec/holderIdentity', value: identity },
        { op: 'test', path: '/spec/leaseTransitions', value: transitions },
      ]
      return [{ do: 'patch', kind: leaseKind, ref, patch: { type: 'json', body } }]
    },
    leaseFences() {
      assertStillLeader()
      return [{ namespace, name, holder: identity, transitions }]
    },
    run,
  }
}

/**
 * Elects with several leases: this process leads while it holds all of them. All processes must list shared leases in the
 * same order, so that two of them never wait for each other.
 */
export function holdAll(elections: readonly LeaderElection[]): LeaderElection {
  return {
    get isLeader() {
      return elections.every(({ isLeader }) => isLeader)
    },
    get holder() {
      return elections.find(({ isLeader, holder }) => !isLeader && holder !== '')?.holder ?? elections[0]?.holder ?? ''
    },
    assertStillLeader() {
      for (const election of elections) election.assertStillLeader()
    },
    fence: () => elections.flatMap((election) => election.fence()),
    leaseFences: () => elections.flatMap((election) => election.leaseFences()),
    run(lead, signal) {
      const runNested = elections.reduceRight<(signal: AbortSignal) => Promise<void>>(
        (runInner, election) => (term) => election.run(runInner, term),
        lead,
      )
      return runNested(signal)
    },
  }
}
