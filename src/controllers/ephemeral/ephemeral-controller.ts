// Creates the claims of generic ephemeral volumes (claim-from-template.ts). If a claim of the same name exists that the
// pod does not own, the controller does not change it and records an event on the pod.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
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
import { claimFromTemplate, claimNameFor, isOwnedBy, notOwnedMessage } from './claim-from-template.ts'
import type { EphemeralMetrics } from './metrics.ts'

export interface EphemeralOptions extends ControllerDeps {
  /** Default: a recorder of the component `ephemeral_volume`, which the controller runs itself. */
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
    operation: { component: 'ephemeral', name: 'CreateClaim' },
    clock,
    random,
    log,
    workers: WORKERS,
    metrics,
    sources: [
      source({
        cache: pods,
        keysOf: (pod) => (ephemeralVolumes(pod).length > 0 ? [keyOfObject(pod)] : []),
        matters: () => false, // a pod's volumes are immutable
      }),
      source({
        cache: claims,
        keysOf: (claim) => pods.byIndex(BY_CLAIM, keyOfObject(claim)).map(keyOfObject),
        matters: () => false, // only creation and deletion matter
      }),
    ],
    reconcile: (key) => reconcilePod(key, { client, pods, claims, events, counters }),
  })
  metrics?.queues.add(controller.queue)
  return {
    queues: [controller.queue],
    async run(signal) {
      const recorderAbort = new AbortController()
      const recorderRun = options.events ? undefined : events.run(recorderAbort.signal)
      try {
        await controller.run(signal)
      } finally {
        recorderAbort.abort()
        await recorderRun
      }
    },
  }
}

interface EphemeralDeps {
  readonly client: Client
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: EventRecorder
  readonly counters?: EphemeralMetrics
}

async function reconcilePod(key: ObjectKey, deps: EphemeralDeps): Promise<Outcome> {
  const pod = deps.pods.get(key)
  if (!pod || pod.metadata.deletionTimestamp) return done
  let conflict: string | undefined
  for (const volume of ephemeralVolumes(pod)) {
    const desiredClaim = claimFromTemplate(pod, volume)
    if (!desiredClaim) continue
    const existingClaim =
      deps.claims.get(keyOfObject(desiredClaim)) ?? (await createOrReport(desiredClaim, volume.name, pod, deps))
    if (!existingClaim || isOwnedBy(existingClaim, pod)) continue
    conflict = `ephemeral volume ${volume.name}: ${notOwnedMessage(keyOfObject(existingClaim), key)}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedBinding', message: conflict })
  }
  return conflict === undefined ? done : stuck(conflict)
}

/** Creates the claim, or records an event and throws if it cannot be created, for example because of a quota. */
async function createOrReport(
  claim: PersistentVolumeClaim,
  volumeName: string,
  pod: Readonly<Pod>,
  deps: EphemeralDeps,
): Promise<Readonly<PersistentVolumeClaim> | undefined> {
  try {
    return await createClaim(claim, deps)
  } catch (error) {
    const message = `ephemeral volume ${volumeName}: create PVC ${claim.metadata.name}: ${(error as Error).message}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedBinding', message })
    throw error
  }
}

/** Creates the claim. Returns a claim of the same name if one exists that the cache does not contain yet. */
async function createClaim(
  claim: PersistentVolumeClaim,
  { client, counters }: EphemeralDeps,
): Promise<Readonly<PersistentVolumeClaim> | undefined> {
  const { namespace = '', name = '' } = claim.metadata
  counters?.creations.inc()
  try {
    await client.create(persistentVolumeClaimKind, claim)
    return undefined
  } catch (error) {
    counters?.failures.inc()
    if (!isAlreadyExists(error)) throw error
    return client.get(persistentVolumeClaimKind, { namespace, name })
  }
}
