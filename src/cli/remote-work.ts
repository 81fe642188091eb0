// Work on a Kubernetes API server somewhere, in a process of its own: finds the server, shows metrics and health, and
// works while it holds the lease, so that of several processes one does.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Logger } from '../base/log.ts'
import {
  createCacheSet,
  createClientMetrics,
  createLeaderElection,
  httpClient,
  type LeaderElection,
} from '../client/index.ts'
import type { ControllerDeps } from '../controllers/deps.ts'
import { findServer } from '../sdk/find-server.ts'
import { parseListen, UsageError } from './flags.ts'
import { parseLeaseDuration } from './lease-flag.ts'
import { serveMonitoring } from './monitoring.ts'

export interface RemoteWorkFlags {
  readonly kubeconfig?: string
  readonly leaderElection: boolean
  readonly leaderElectionLeaseDuration?: string
  readonly httpEndpoint?: string
}

export interface RemoteWorkDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface RemoteWork {
  /** Name of the lease in kube-system, and of this program to the server. */
  readonly lease: string
  /** What the log says of it at the start. */
  readonly about: object
  /** Metrics of its own are made once; the work itself anew for every term, for what one believed is not true for the next. */
  prepare(registry: Registry): (deps: WorkDeps) => { run(until: AbortSignal): Promise<void> }
}

export interface WorkDeps extends ControllerDeps {
  readonly election?: LeaderElection
}

export async function runRemoteWork(work: RemoteWork, flags: RemoteWorkFlags, deps: RemoteWorkDeps): Promise<void> {
  const { clock, random, log, signal } = deps
  const leaseTimes = parseLeaseDuration(flags.leaderElectionLeaseDuration)
  const { connection } = await findServer(flags.kubeconfig, deps).catch((error) => {
    throw new UsageError((error as Error).message)
  })
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const start = work.prepare(registry)
  const client = httpClient({ connection, clock, userAgent: work.lease, observer: metrics.requests })
  const monitoring = flags.httpEndpoint
    ? await serveMonitoring({
        ...parseListen(flags.httpEndpoint, '--http-endpoint'),
        registry,
        metricsPath: '/metrics',
        health: { '/healthz': () => undefined },
      })
    : undefined

  async function term(until: AbortSignal, election?: LeaderElection): Promise<void> {
    setMaxListeners(0, until) // every watch listens to it
    const caches = createCacheSet({ client, clock, random, log })
    try {
      await start({ client, caches, clock, random, log, metrics, ...(election ? { election } : {}) }).run(until)
    } finally {
      await caches.stop()
    }
  }

  try {
    log.info({ server: connection.server, ...work.about }, 'started')
    if (!flags.leaderElection) return await term(signal)
    const election = createLeaderElection({
      client,
      clock,
      random,
      log,
      namespace: 'kube-system',
      name: work.lease,
      identity: `${hostname()}_${randomUuid(random)}`,
      ...leaseTimes,
      onChange: (isLeader) => metrics.leadership(work.lease, isLeader),
    })
    await election.run((until) => term(until, election), signal)
  } finally {
    await monitoring?.stop()
    client.close()
    log.info({}, 'stopped')
  }
}
