// One term of a provisioner's work: from here on until the signal fires, its claims and volumes are this process's.
// Everything it knows of the cluster is made anew, so that nothing is believed from an earlier term.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import {
  createProvisioningControllers,
  type Provisioner,
  type ProvisioningMetrics,
  type ProvisioningOptions,
} from '../controllers/provisioning/index.ts'
import {
  type ClientMetrics,
  createCacheSet,
  createEventRecorder,
  type LeaderElection,
  type WorkQueue,
} from '../runtime/index.ts'

export interface Term {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ClientMetrics
  readonly provisioningMetrics: ProvisioningMetrics
  readonly provisioner: Provisioner
  readonly options: ProvisioningOptions
  readonly election: LeaderElection | undefined
  /** Told once everything there is has been seen. */
  onReady(): void
}

export async function workTerm({ onReady, election, ...deps }: Term, signal: AbortSignal): Promise<void> {
  const { client, clock, random, log, metrics, provisioner } = deps
  setMaxListeners(0, signal) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random, log })
  const events = createEventRecorder({ client, clock, random, log, component: provisioner.name, instance: hostname() })
  const controllers = createProvisioningControllers({ ...deps, caches, events, ...(election ? { election } : {}) })
  for (const cache of caches.all()) metrics.caches.add(cache)
  const workOver = new AbortController()
  const telling = events.run(workOver.signal)
  const synced = async () => {
    if (await caches.whenSynced(signal)) onReady()
  }
  const quiet = sayWhatIsWaitedFor(controllers.queues, deps, signal)
  try {
    await Promise.all([controllers.run(signal), synced()])
  } finally {
    quiet()
    workOver.abort() // what the last of it had to say is still told
    await telling
    for (const queue of controllers.queues) metrics.queues.delete(queue)
    for (const cache of caches.all()) metrics.caches.delete(cache)
    await caches.stop()
  }
}

/** A call that gives up when it is told to has ended by then. */
const STILL_THERE_MS = 1_000
const SHOWN_MAX = 20

/** One line, when work goes on after it was told to end. The given function ends that. */
function sayWhatIsWaitedFor(
  queues: readonly WorkQueue[],
  { clock, log, provisioner }: Pick<Term, 'clock' | 'log' | 'provisioner'>,
  signal: AbortSignal,
): () => void {
  let cancel = () => {}
  const say = () => {
    const running = queues.flatMap((queue) => queue.standings().filter(({ is }) => is === 'running'))
    if (running.length === 0) return
    const waitingFor = running.slice(0, SHOWN_MAX).map(({ key }) => key)
    log.warn(
      { provisioner: provisioner.name, count: running.length, waitingFor },
      'stopping: the provisioner was told to give up, and still works on these',
    )
  }
  const wait = () => {
    cancel = clock.after(STILL_THERE_MS, say)
  }
  signal.addEventListener('abort', wait, { once: true })
  return () => {
    signal.removeEventListener('abort', wait)
    cancel()
  }
}
