// Elects one leader by a Lease object. The holder renews it every few seconds; other processes take it when they have seen
// the same record unchanged for the whole lease duration, by their own monotonic clock.
//
// Two processes never lead at once: leadership ends `renewDeadlineMs` after the leader *sent* its last successful renewal,
// and no other process takes the lease before `leaseMs` after it *saw* that renewal, which is later. The difference (5 s of
// 15) is the tolerated clock drift. A paused leader finds its leadership expired when it resumes; requests it had already
// sent are rejected by the fence, where commits are atomic.
import { leaseKind } from '../api/kinds/lease/lease.ts'
import type { Lease } from '../api/kinds/lease/lease-schema.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client, CommitWrite } from '../client/client.ts'
import { find } from '../client/find.ts'

export interface LeaseTimes {
  /** How long others wait after the last renewal they saw. */
  readonly leaseMs: number
  /** How long the leader leads after it sent its last successful renewal. */
  readonly renewDeadlineMs: number
  /** Between two attempts to take or renew the lease. */
  readonly retryMs: number
}

export interface LeaderElectionOptions extends Partial<LeaseTimes> {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  readonly namespace: string
  readonly name: string
  /** Unique for every start of a process: `host_uuid`. */
  readonly identity: string
  /** Called with false at the start, and when leadership starts and ends; for leader_election_master_status. */
  onChange?(isLeader: boolean): void
}

export interface LeaderElection {
  /** By the clock, now. */
  readonly isLeader: boolean
  /** The holder when the lease was last read. */
  readonly holder: string
  /** Throws NotLeaderError. Call it right before every effect outside the API server. */
  assertStillLeader(): void
  /** A first write for commits: changes nothing, and fails the commit if another process holds the lease. */
  fence(): CommitWrite
  /** Runs `lead` in every term as leader; its signal fires when the term ends. Releases the lease when `signal` fires. */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

export class NotLeaderError extends Error {
  override readonly name = 'NotLeaderError'
}

const LEASE_MS = 15_000
const RENEW_DEADLINE_MS = 10_000
const RETRY_MS = 2_000
const RETRY_JITTER = 1.2

export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { client, clock, random, log = silentLog, namespace, name, identity } = options
  const { leaseMs = LEASE_MS, renewDeadlineMs = RENEW_DEADLINE_MS, retryMs = RETRY_MS } = options
  if (!(leaseMs > renewDeadlineMs && renewDeadlineMs > retryMs * RETRY_JITTER)) {
    throw new Error(
      `Cannot elect a leader with a lease of ${leaseMs} ms, a renewal deadline of ${renewDeadlineMs} ms and retries every ` +
        `${retryMs} ms: each must be clearly shorter than the one before.`,
    )
  }
  const ref = { namespace, name }
  /** The record as last read, and when it was first seen in this state. */
  let observed: { lease: Readonly<Lease>; record: string; sinceMs: number } | undefined
  /** By the monotonic clock; in the past if this process does not lead. */
  let leaderUntilMs = Number.NEGATIVE_INFINITY
  let transitions = 0

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
    if (observed?.record === record) observed = { ...observed, lease }
    else observed = { lease, record, sinceMs: clock.monotonicMs() }
  }

  /** One attempt to take or renew the lease. The leader remembers its last write and does not read the lease first. */
  async function acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    if (isLeader() && observed && (await renewKnown(observed.lease, signal))) return true
    const sentMs = clock.monotonicMs()
    const own = mine()
    const current = await read(signal)
    if (!current) {
      const spec = { ...own, acquireTime: own.renewTime, leaseTransitions: 0 }
      took(await client.create(leaseKind, { metadata: { ...ref }, spec }, { signal }), sentMs)
      return true
    }
    observe(current)
    const spec = current.spec ?? {}
    const isMine = spec.holderIdentity === identity
    if (!isMine && spec.holderIdentity) {
      const theirsMs = Math.max(leaseMs, (spec.leaseDurationSeconds ?? 0) * 1_000)
      if (clock.monotonicMs() - observed!.sinceMs < theirsMs) return false
    }
    const taken = isMine ? {} : { acquireTime: own.renewTime, leaseTransitions: (spec.leaseTransitions ?? 0) + 1 }
    // With the resourceVersion that was read: of two concurrent attempts one succeeds.
    took(await client.update(leaseKind, { ...current, spec: { ...spec, ...taken, ...own } }, { signal }), sentMs)
    return true
  }

  /** False: another process wrote the lease, or the response to an own write was lost. */
  async function renewKnown(lease: Readonly<Lease>, signal: AbortSignal): Promise<boolean> {
    const sentMs = clock.monotonicMs()
    if (lease.spec?.holderIdentity !== identity) return false
    try {
      took(await client.update(leaseKind, { ...lease, spec: { ...lease.spec, ...mine() } }, { signal }), sentMs)
      return true
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return false
      throw error
    }
  }

  const mine = () => ({
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    renewTime: microTime(clock.nowMs()),
  })

  const read = (signal: AbortSignal) => find(client, leaseKind, ref, { signal })

  function took(lease: Readonly<Lease>, sentMs: number): void {
    observe(lease)
    transitions = lease.spec?.leaseTransitions ?? 0
    leaderUntilMs = Math.max(leaderUntilMs, sentMs + renewDeadlineMs)
  }

  async function attempt(signal: AbortSignal): Promise<boolean> {
    try {
      return await acquireOrRenew(signal)
    } catch (error) {
      if (!signal.aborted) log.debug({ err: error, lease: `${namespace}/${name}` }, 'lease not acquired; retrying')
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
      // Work that failed must not take the lease again at once.
      if ((await leadWhileRenewing(lead, signal)) === 'failed') await pause(signal)
    }
  }

  async function leadWhileRenewing(
    lead: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<'ended' | 'failed'> {
    let end: 'ended' | 'failed' = 'ended'
    const term = new AbortController()
    const stop = () => term.abort()
    signal.addEventListener('abort', stop, { once: true })
    term.signal.addEventListener('abort', () => options.onChange?.(false), { once: true })
    options.onChange?.(true)
    log.info({ lease: `${namespace}/${name}`, identity }, 'leading')
    const leading = lead(term.signal).catch((error) => {
      log.error({ err: error }, 'the work of the leader failed')
      end = 'failed'
      term.abort()
    })
    try {
      let cancelDeadline = () => {}
      while (!term.signal.aborted) {
        cancelDeadline()
        cancelDeadline = clock.after(leaderUntilMs - clock.monotonicMs(), stop) // also while a renewal hangs
        await pause(term.signal)
        if (!term.signal.aborted) await attempt(term.signal)
        if (!isLeader()) term.abort()
      }
      cancelDeadline()
      await leading // the next leader must not overlap with this work
    } finally {
      signal.removeEventListener('abort', stop)
    }
    if (isLeader()) await release()
    else
      log.warn({ lease: `${namespace}/${name}`, identity }, 'leadership lost: the lease could not be renewed in time')
    leaderUntilMs = Number.NEGATIVE_INFINITY
    return end
  }

  /** So that the next leader does not have to wait for the lease to expire. */
  async function release(): Promise<void> {
    leaderUntilMs = Number.NEGATIVE_INFINITY
    try {
      const current = await client.get(leaseKind, ref)
      if (current.spec?.holderIdentity !== identity) return
      const spec = { ...current.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.nowMs()) }
      await client.update(leaseKind, { ...current, spec })
    } catch (error) {
      log.info({ err: error, lease: `${namespace}/${name}` }, 'lease not released; it expires by itself')
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
      return observed?.lease.spec?.holderIdentity ?? ''
    },
    assertStillLeader,
    fence() {
      assertStillLeader()
      const body = [
        { op: 'test', path: '/spec/holderIdentity', value: identity },
        { op: 'test', path: '/spec/leaseTransitions', value: transitions },
      ]
      return { do: 'patch', kind: leaseKind, ref, patch: { type: 'json', body } }
    },
    run,
  }
}

/** Lease times have microseconds; the clock has milliseconds. */
const microTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -1)}000Z`
