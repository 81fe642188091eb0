// One term of a resizer's work: from here on until the signal fires, the volumes of the driver are this process's to
// change. Everything it knows of the cluster is made anew, so that nothing is believed from an earlier term.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import type { Client } from '../client/index.ts'
import { canExpand } from '../controllers/expanding/index.ts'
import type { ModifyingMetrics } from '../controllers/modifying/index.ts'
import type { ServedNode } from '../controllers/volume-changes/index.ts'
import type { CsiDriver, DriverFacts } from '../csi/index.ts'
import { changesComponent, createVolumeChanges } from '../processes/volume-changes.ts'
import { type ClientMetrics, createCacheSet, createEventRecorder, type LeaderElection } from '../runtime/index.ts'
import type { ResizerRun } from './resizer.ts'

export interface ResizerWork extends Omit<ResizerRun, 'signal'> {
  readonly client: Client
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly metrics: ClientMetrics
  readonly modifyingMetrics: ModifyingMetrics
  /** The one whose volumes are changed; absent: those of all. */
  readonly node?: ServedNode
  readonly election?: LeaderElection
}

export function checkAbleToChange(facts: DriverFacts, address: string): void {
  const says = `The CSI driver ${facts.name} at ${address}`
  if (!facts.plugin.has('CONTROLLER_SERVICE')) {
    throw new Error(`${says} does not report the capability CONTROLLER_SERVICE. Run the resizer beside one that does.`)
  }
  if (canExpand(facts) || facts.controller.has('MODIFY_VOLUME')) return
  throw new Error(
    `${says} cannot change volumes: it reports the capability EXPAND_VOLUME neither for the controller nor for nodes, ` +
      'nor MODIFY_VOLUME. ' +
      'Run no resizer beside it.',
  )
}

export async function changeVolumes(work: ResizerWork, term: AbortSignal): Promise<void> {
  const { settings, client, clock, random, log, metrics, driver, facts, node, election, modifyingMetrics } = work
  setMaxListeners(0, term) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random, log })
  const component = changesComponent(facts)
  const events = createEventRecorder({ client, clock, random, log, component, instance: hostname() })
  const controllers = createVolumeChanges({
    client,
    caches,
    clock,
    random,
    log,
    metrics,
    driver,
    facts,
    events,
    gates: settings.gates,
    modifyingMetrics,
    ...(node ? { node } : {}),
    ...(election ? { election } : {}),
    options: {
      workers: settings.workers,
      retryIntervalStartMs: settings.retryIntervalStart,
      retryIntervalMaxMs: settings.retryIntervalMax,
      ...(settings.pace ? { pace: settings.pace } : {}),
      expanding: {
        timeoutMs: settings.timeout,
        slowRetryMs: settings.retryIntervalMax,
        handlesInUse: settings.handleVolumeInuseError,
        checksCapacity: settings.checkCapacity,
      },
      modifying: {
        timeoutMs: settings.timeout,
        slowRetryMs: settings.retryIntervalMax,
        extraModifyMetadata: settings.extraModifyMetadata,
        handlesInUse: settings.handleVolumeInuseError,
      },
    },
  })
  for (const cache of caches.all()) metrics.caches.add(cache)
  const workOver = new AbortController()
  const telling = events.run(workOver.signal)
  try {
    await controllers.run(term)
  } finally {
    workOver.abort() // what the last of them had to say is still told
    await telling
    for (const queue of controllers.queues) metrics.queues.delete(queue)
    for (const cache of caches.all()) metrics.caches.delete(cache)
    await caches.stop()
  }
}
