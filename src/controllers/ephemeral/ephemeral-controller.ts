// Makes the claims of ephemeral volumes: one per volume of a pod, owned by it. A claim of that name that was not made for
// the pod is left alone, and the pod is told. Woken by the pod, and by a claim that appears or goes.
import { Counter, type Registry } from 'prom-client'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  type Cache,
  createController,
  createEventRecorder,
  done,
  type EventRecorder,
  type Outcome,
  source,
  stuck,
  type WorkQueue,
} from '../../runtime/index.ts'
import { claimFromTemplate, claimNameFor, isMadeFor, notMadeFor } from './claim-from-template.ts'

export interface EphemeralOptions extends ControllerDeps {
  /** Default: one of its own, as `ephemeral_volume`. */
  readonly events?: EventRecorder
  readonly ephemeralMetrics?: EphemeralMetrics
}

export interface EphemeralController {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const NAME = 'ephemeral_volume'
const WORKERS = 32
const BY_CLAIM = 'ephemeral/claim'

const claimKeysOf = (pod: Readonly<Pod>): ObjectKey[] =>
  ephemeralVolumes(pod).map((volume) => `${pod.metadata.namespace}/${claimNameFor(pod, volume)}`)

const ephemeralVolumes = ({ spec }: Readonly<Pod>) => (spec?.volumes ?? []).filter(({ ephemeral }) => ephemeral)

export function createEphemeralController(options: EphemeralOptions): EphemeralController {
  const { client, caches, clock, random, log, metrics, ephemeralMetrics: counters } = options
  const pods = caches.of(podKind)
  const claims = caches.of(persistentVolumeClaimKind)
  pods.addIndex(BY_CLAIM, claimKeysOf)
  const events = options.events ?? createEventRecorder({ client, clock, random, log, component: NAME })
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    workers: WORKERS,
    metrics,
    sources: [
      source({
        cache: pods,
        keysOf: (pod) => (ephemeralVolumes(pod).length > 0 ? [keyOfObject(pod)] : []),
        matters: () => false, // which volumes a pod has never changes
      }),
      source({
        cache: claims,
        keysOf: (claim) => pods.byIndex(BY_CLAIM, keyOfObject(claim)).map(keyOfObject),
        matters: () => false, // it is there or it is not
      }),
    ],
    reconcile: (key) => reconcilePod(key, { client, pods, claims, events, ...(counters ? { counters } : {}) }),
  })
  metrics?.queues.add(controller.queue)
  return {
    queues: [controller.queue],
    async run(signal) {
      const telling = new AbortController()
      const told = options.events ? undefined : events.run(telling.signal)
      try {
        await controller.run(signal)
      } finally {
        telling.abort()
        await told
      }
    },
  }
}

export interface EphemeralMetrics {
  readonly created: Counter
  readonly failed: Counter
}

/** Once per process. */
export const createEphemeralMetrics = (registry: Registry): EphemeralMetrics => ({
  created: new Counter({
    name: 'ephemeral_volume_controller_create_total',
    help: 'Claims that were asked for on account of ephemeral volumes.',
    registers: [registry],
  }),
  failed: new Counter({
    name: 'ephemeral_volume_controller_create_failures_total',
    help: 'Of these, how many could not be made.',
    registers: [registry],
  }),
})

interface EphemeralDeps {
  readonly client: Client
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: EventRecorder
  readonly counters?: EphemeralMetrics
}

async function reconcilePod(key: ObjectKey, deps: EphemeralDeps): Promise<Outcome> {
  const pod = deps.pods.get(key)
  if (!pod || pod.metadata.deletionTimestamp) return done // nobody needs them any more
  let conflict: string | undefined
  for (const volume of ephemeralVolumes(pod)) {
    const wanted = claimFromTemplate(pod, volume)
    if (!wanted) continue
    const existing = deps.claims.get(keyOfObject(wanted)) ?? (await makeOrTell(wanted, volume.name, pod, deps))
    if (!existing || isMadeFor(existing, pod)) continue
    conflict = `ephemeral volume ${volume.name}: ${notMadeFor(keyOfObject(existing), key)}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedBinding', message: conflict })
  }
  return conflict === undefined ? done : stuck(conflict)
}

/** A pod whose claim a quota refuses would otherwise wait without a word. */
async function makeOrTell(
  claim: PersistentVolumeClaim,
  volumeName: string,
  pod: Readonly<Pod>,
  deps: EphemeralDeps,
): Promise<Readonly<PersistentVolumeClaim> | undefined> {
  try {
    return await make(claim, deps)
  } catch (error) {
    const message = `ephemeral volume ${volumeName}: create PVC ${claim.metadata.name}: ${(error as Error).message}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedBinding', message })
    throw error
  }
}

/** The claim that was in the way, if there is one that the cache does not show yet. */
async function make(
  claim: PersistentVolumeClaim,
  { client, counters }: EphemeralDeps,
): Promise<Readonly<PersistentVolumeClaim> | undefined> {
  const { namespace = '', name = '' } = claim.metadata
  counters?.created.inc()
  try {
    await client.create(persistentVolumeClaimKind, claim)
    return undefined
  } catch (error) {
    counters?.failed.inc()
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error
    return client.get(persistentVolumeClaimKind, { namespace, name })
  }
}
