// The controllers that run beside an API server, in its process: wired here, once, and led by one process where
// several share a store.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { ALL_KINDS } from '../api/kinds/index.ts'
import type { ApiServer } from '../apiserver/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Logger } from '../base/log.ts'
import {
  createCacheSet,
  createClientMetrics,
  createLeaderElection,
  inProcessClient,
  type LeaderElection,
} from '../client/index.ts'
import { createBindingControllers, createBindingMetrics } from '../controllers/binding/index.ts'
import type { ControllerDeps } from '../controllers/deps.ts'
import { createGarbageController } from '../controllers/garbage/index.ts'
import { createNamespaceController } from '../controllers/namespaces/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import {
  createProvisioningControllers,
  createProvisioningMetrics,
  type Provisioner,
} from '../controllers/provisioning/index.ts'

export interface BesideServer {
  readonly server: ApiServer
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Other processes may run controllers on the same store: only the leader's work. */
  readonly isShared: boolean
  /** Makers of volumes in this process. */
  readonly inProcess: readonly Provisioner[]
}

/** Held by the process whose controllers work, where several share a store. */
const CONTROLLERS_LEASE = 'stowage-controllers'
/** Who the controllers are to the API server. */
const CONTROLLERS_USER = { name: 'system:stowage-controllers', groups: ['system:masters'] }

export async function runControllers(options: BesideServer): Promise<void> {
  const { server, clock, random, log, signal, isShared, inProcess } = options
  const client = inProcessClient(server.objects, CONTROLLERS_USER)
  const { registry } = server.metrics
  const metrics = createClientMetrics(registry)
  const bindingMetrics = createBindingMetrics(registry)
  const provisioningMetrics = createProvisioningMetrics(registry)

  async function run(until: AbortSignal, election?: LeaderElection): Promise<void> {
    setMaxListeners(0, until) // every watch of every controller listens to it
    const caches = createCacheSet({ client, clock, random, log })
    const deps: ControllerDeps = { client, caches, clock, random, log, metrics }
    const controllers = [
      createNamespaceController({ ...deps, kinds: ALL_KINDS }),
      createGarbageController({ ...deps, kinds: ALL_KINDS }),
      createProtectionControllers(deps),
      createBindingControllers({ ...deps, inProcess, bindingMetrics }),
      ...inProcess.map((provisioner) =>
        createProvisioningControllers({
          ...deps,
          provisioner,
          options: { inProcess: true },
          provisioningMetrics,
          ...(election ? { election } : {}),
        }),
      ),
    ]
    try {
      await Promise.all(controllers.map((controller) => controller.run(until)))
    } finally {
      await caches.stop()
    }
  }

  if (!isShared) return run(signal)
  const election = createLeaderElection({
    client,
    clock,
    random,
    log,
    namespace: 'kube-system',
    name: CONTROLLERS_LEASE,
    identity: `${hostname()}_${randomUuid(random)}`,
    onChange: (isLeader) => metrics.leadership(CONTROLLERS_LEASE, isLeader),
  })
  await election.run((until) => run(until, election), signal)
}
