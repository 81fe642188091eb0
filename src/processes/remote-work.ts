// Work on a Kubernetes API server somewhere, in a process of its own: finds the server, shows metrics and health, and
// works while it holds the lease, so that of several processes one does.
import { setMaxListeners } from 'node:events'
import type { Registry } from 'prom-client'
import type { Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { processIdentity } from '../base/process-identity.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createCacheSet, createLeaderElection, type LeaderElection } from '../runtime/index.ts'
import type { LeaseTimes } from '../runtime/leader-election.ts'
import { type RemoteServerDeps, type RemoteServerFlags, reachServer } from './remote-server.ts'

export interface RemoteWorkFlags extends RemoteServerFlags {
  readonly leaderElection: boolean
}

export interface RemoteWorkDeps extends RemoteServerDeps {
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface RemoteWork {
  /** Name of the lease in kube-system, and of this program to the server. */
  readonly lease: string
  readonly leaseTimes: LeaseTimes
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
  const server = await reachServer(work.lease, flags, deps)
  const { client, metrics } = server
  const start = work.prepare(server.registry)

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
    log.info({ server: server.url, ...work.about }, 'started')
    if (!flags.leaderElection) return await term(signal)
    const election = createLeaderElection({
      client,
      clock,
      random,
      log,
      namespace: 'kube-system',
      name: work.lease,
      identity: processIdentity(random),
      ...work.leaseTimes,
      onChange: (isLeader) => metrics.leadership(work.lease, isLeader),
    })
    await election.run((until) => term(until, election), signal)
  } finally {
    await server.close()
    log.info({}, 'stopped')
  }
}
