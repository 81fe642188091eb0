// Runs the controllers of a process: starts their caches, runs them with or without leader election, restarts failed work,
// and reports health. host.ts connects a process to its API server.
//
// A term lasts from the time this process acquires the lease until it loses or releases it. Each term creates its own caches
// and controllers, so that no state outlives the lease. Work that fails within a term is restarted with backoff while the
// lease is kept, because the same failure is likely in another process.
import { setMaxListeners } from 'node:events'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { processIdentity } from '../base/process-identity.ts'
import type { Client } from '../client/client.ts'
import { backoffMs } from './backoff.ts'
import { type CacheReductions, createCacheSet } from './cache-set.ts'
import type { ControllerDeps } from './controller-deps.ts'
import { fencedClient } from './fenced-client.ts'
import { createLeaderElection, holdAll, type LeaderElection, type LeaseTimes } from './leader-election.ts'
import { createLeaseGuard } from './lease-guard.ts'
import { LEASE_TIMES } from './lease-times.ts'
import type { ClientMetrics } from './metrics.ts'
import type { HealthChecks } from './monitoring.ts'
import { queuesOf, type Runnable, runAll } from './run-all.ts'
import { awaitWithStopLimit } from './stop-within.ts'

export interface ManagerOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ClientMetrics
  /** The lease that selects one of several processes. Default: no leader election. */
  readonly lease?: LeaseOptions
  /** Removes fields of cached objects. Default: only managedFields are removed. */
  readonly reductions?: CacheReductions
  /** The time that `run` waits for work in progress after the signal is aborted. Default: no limit. */
  readonly stopTimeoutMs?: number
  /** Called at the start of every term, and again after a failure. Acquires its caches from `deps.caches`. */
  createControllers(deps: TermDeps): readonly Runnable[]
  /** Called after each call of `createControllers`, when the caches that it acquired are synced or not served. */
  onSynced?(): void
}

interface LeaseOptions extends Partial<LeaseTimes> {
  readonly namespace: string
  readonly name: string
  /** More leases that this process must hold, in the order in which every process acquires them. */
  readonly additionalNames?: readonly string[]
  /** Leases of other programs that do the same work. This process does not lead while one of them is held. */
  readonly foreignNames?: readonly string[]
  /** Labels that the leader puts on the lease. */
  readonly labels?: Readonly<Record<string, string>>
  /** The value of the label `name` of the metrics. Default: the lease's name. */
  readonly metricName?: string
  /** Default: the client of the manager. Should have no rate limit, so that the work cannot delay a renewal. */
  readonly client?: Client
}

/** The dependencies of the controllers of one term. */
export interface TermDeps extends ControllerDeps {
  readonly metrics: ClientMetrics
  /** Undefined without a lease. */
  readonly election?: LeaderElection
}

export interface Manager {
  readonly health: HealthChecks
  /**
   * Runs until the signal is aborted and the work has stopped. Resolves to 'abandoned' if work is still running
   * stopTimeoutMs after the abort. Without a lease, rejects with the error of the work.
   */
  run(signal: AbortSignal): Promise<'stopped' | 'abandoned'>
}

const RESTART_BACKOFF = { baseMs: 1_000, maxMs: 60_000 }
/** Restarted work that has run for this time is considered recovered. */
const RECOVERY_MS = 10_000
/** The delay between the abort of the signal and the log entry about work that still runs. */
const RUNNING_REPORT_DELAY_MS = 1_000
const REPORTED_KEYS_MAX = 20

export function createManager(options: ManagerOptions): Manager {
  const { client, clock, random, log, metrics, lease } = options
  let isWorking = false
  let isSynced = false
  let controllers: readonly Runnable[] = []
  let failure: { readonly message: string; readonly count: number } | undefined

  function createElection({ additionalNames = [], foreignNames = [], ...leaseOptions }: LeaseOptions): LeaderElection {
    const identity = processIdentity(random)
    const optionsOfLeases = [leaseOptions, ...additionalNames.map((name) => ({ ...leaseOptions, name }))]
    const elections = optionsOfLeases.map((electionOptions) =>
      createLeaderElection({
        client,
        clock,
        random,
        log,
        ...electionOptions,
        identity,
        onChange: (isLeader) => metrics.setLeadership(electionOptions.metricName ?? electionOptions.name, isLeader),
      }),
    )
    if (foreignNames.length === 0) return holdAll(elections)
    const { leaseMs = LEASE_TIMES.leaseMs, retryMs = LEASE_TIMES.retryMs } = leaseOptions
    const guard = createLeaseGuard({ client, clock, log, ...leaseOptions, names: foreignNames, leaseMs, retryMs })
    return holdAll([guard, ...elections])
  }
  const election = lease && createElection(lease)

  async function runWork(signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal)
    const caches = createCacheSet({ client, clock, random, log, reductions: options.reductions })
    try {
      controllers = options.createControllers({
        client: election ? fencedClient(client, election) : client,
        caches,
        clock,
        random,
        log,
        metrics,
        election,
      })
      for (const cache of caches.all()) metrics.caches.add(cache)
      isWorking = true
      void caches.whenSyncedOrNotServed(signal).then((isComplete) => {
        if (!isComplete || !isWorking) return
        isSynced = true
        options.onSynced?.()
      })
      await runAll(controllers, signal)
    } finally {
      isWorking = false
      isSynced = false
      for (const queue of queuesOf(controllers)) metrics.queues.delete(queue)
      for (const cache of caches.all()) metrics.caches.delete(cache)
      await caches.stop()
    }
  }

  /** Runs the work, and restarts it after failures, until the term ends. */
  async function lead(term: AbortSignal): Promise<void> {
    while (!term.aborted) {
      const clearFailure = () => {
        failure = undefined
      }
      const cancelRecovery = failure ? clock.after(RECOVERY_MS, clearFailure) : () => {}
      try {
        return await runWork(term)
      } catch (error) {
        cancelRecovery()
        if (term.aborted) return log.warn({ err: error }, "the leader's controllers did not stop cleanly")
        await backOff(error, term)
      }
    }
  }

  async function backOff(error: unknown, term: AbortSignal): Promise<void> {
    const count = (failure?.count ?? 0) + 1
    failure = { message: error instanceof Error ? error.message : String(error), count }
    metrics.countLeaderWorkFailure(lease!.metricName ?? lease!.name)
    const afterMs = Math.round(backoffMs(RESTART_BACKOFF, count - 1, random))
    log.error({ err: error, failures: count, afterMs }, "the leader's controllers failed; restarting them")
    await clock.sleep(afterMs, term).catch(() => {})
  }

  /** Logs the keys that are still being processed some time after the signal is aborted. */
  function reportRunningWork(signal: AbortSignal): () => void {
    let cancel = () => {}
    const report = () => {
      const runningKeys = queuesOf(controllers).flatMap((queue) => queue.states().filter(({ is }) => is === 'running'))
      if (runningKeys.length === 0) return
      const waitingFor = runningKeys.slice(0, REPORTED_KEYS_MAX).map(({ key }) => key)
      log.warn({ count: runningKeys.length, waitingFor }, 'stopping: waiting for work in progress')
    }
    const start = () => {
      cancel = clock.after(RUNNING_REPORT_DELAY_MS, report)
    }
    signal.addEventListener('abort', start, { once: true })
    return () => {
      signal.removeEventListener('abort', start)
      cancel()
    }
  }

  const checkWork = () =>
    failure && `the leader's controllers failed (consecutive failures: ${failure.count}): ${failure.message}`
  const checkElection = () =>
    isWorking && election && !election.isLeader
      ? "the lease is lost, but the leader's controllers are still running"
      : checkWork()

  return {
    health: {
      '/healthz': checkWork,
      '/healthz/leader-election': checkElection,
      // A process that does not lead is ready when it knows the holder of the lease, because it can then take over.
      '/readyz': () => {
        if (isSynced) return undefined
        if (election === undefined || isWorking || election.isLeader) return 'the caches are not synced yet'
        return election.holder === '' ? 'the holder of the lease is not known yet' : undefined
      },
    },
    async run(signal) {
      const cancelReport = reportRunningWork(signal)
      const workDone = (election ? election.run(lead, signal) : runWork(signal)).finally(cancelReport)
      const { stopTimeoutMs } = options
      if (stopTimeoutMs !== undefined) return awaitWithStopLimit(workDone, { signal, clock, limitMs: stopTimeoutMs })
      await workDone
      return 'stopped'
    },
  }
}
