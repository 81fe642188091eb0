// `stowage scheduler`: the scheduler of `stowage up` in a process of its own, against any Kubernetes API server. Where
// several run, one works. The ephemeral-volume controller is not part of it: every cluster has one.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Logger } from '../base/log.ts'
import { createCacheSet, createClientMetrics, createLeaderElection, httpClient } from '../client/index.ts'
import { createScheduler, createSchedulerMetrics, SCHEDULER_NAMES } from '../scheduler/index.ts'
import { findServer } from '../sdk/find-server.ts'
import { parseListen, UsageError } from './flags.ts'
import { serveMonitoring } from './monitoring.ts'

export interface SchedulerFlags {
  readonly kubeconfig?: string
  /** As --scheduler-names gives them, separated by commas. */
  readonly schedulerNames?: string
  readonly capacityReservation?: string
  readonly bindTimeoutSeconds?: string
  readonly featureGates?: string
  readonly leaderElection: boolean
  readonly httpEndpoint?: string
}

export interface SchedulerCommandDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Held by the scheduler that works. */
const SCHEDULER_LEASE = 'stowage-scheduler'

export async function runScheduler(flags: SchedulerFlags, deps: SchedulerCommandDeps): Promise<void> {
  const { clock, random, log, signal } = deps
  const settings = parseSchedulerFlags(flags)
  const { connection } = await findServer(flags.kubeconfig, deps).catch((error) => {
    throw new UsageError((error as Error).message)
  })
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const schedulerMetrics = createSchedulerMetrics(registry)
  const client = httpClient({ connection, clock, userAgent: SCHEDULER_LEASE, observer: metrics.requests })
  const monitoring = flags.httpEndpoint
    ? await serveMonitoring({
        ...parseListen(flags.httpEndpoint, '--http-endpoint'),
        registry,
        metricsPath: '/metrics',
        health: { '/healthz': () => undefined },
      })
    : undefined

  /** Made anew for every term: what one scheduler believed is not true for the next. */
  async function schedule(until: AbortSignal): Promise<void> {
    setMaxListeners(0, until) // every watch listens to it
    const caches = createCacheSet({ client, clock, random, log })
    try {
      await createScheduler({ client, caches, clock, random, log, metrics, schedulerMetrics, ...settings }).run(until)
    } finally {
      await caches.stop()
    }
  }

  try {
    log.info({ server: connection.server, schedulers: settings.schedulerNames }, 'started')
    if (!flags.leaderElection) return await schedule(signal)
    const election = createLeaderElection({
      client,
      clock,
      random,
      log,
      namespace: 'kube-system',
      name: SCHEDULER_LEASE,
      identity: `${hostname()}_${randomUuid(random)}`,
      onChange: (isLeader) => metrics.leadership(SCHEDULER_LEASE, isLeader),
    })
    await election.run(schedule, signal)
  } finally {
    await monitoring?.stop()
    client.close()
    log.info({}, 'stopped')
  }
}

export function parseSchedulerFlags(flags: Partial<SchedulerFlags>) {
  const { capacityReservation = 'on', bindTimeoutSeconds = '600', featureGates = '' } = flags
  const names = (flags.schedulerNames ?? SCHEDULER_NAMES.join(',')).split(',').map((name) => name.trim())
  if (names.some((name) => name === '')) {
    throw new UsageError(`--scheduler-names ${JSON.stringify(flags.schedulerNames)}: expected names, by comma`)
  }
  if (capacityReservation !== 'on' && capacityReservation !== 'off') {
    throw new UsageError(`--capacity-reservation ${JSON.stringify(capacityReservation)}: expected on or off`)
  }
  const seconds = Number(bindTimeoutSeconds)
  if (!(Number.isInteger(seconds) && seconds >= 0) || bindTimeoutSeconds.trim() === '') {
    throw new UsageError(
      `--bind-timeout-seconds ${JSON.stringify(bindTimeoutSeconds)}: expected a whole number, 0 or more`,
    )
  }
  try {
    return {
      schedulerNames: names,
      capacityReservation: capacityReservation === 'on',
      bindTimeoutMs: seconds * 1_000,
      gates: parseFeatureGates(featureGates),
    }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}
