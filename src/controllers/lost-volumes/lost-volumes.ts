// Applies the policies for volumes that existed on a lost node only (plan-lost-volume.ts). The keys of the controller are volume
// names. A volume is enqueued only if its node is lost or has returned, or its claim is marked, so other volumes cause no work.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { lostSince } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { find, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  backOff,
  createController,
  createEventRecorder,
  done,
  type EventRecorder,
  type Outcome,
  type Runnable,
  retryAfter,
  source,
  stuck,
  type WorkQueue,
  withRecorders,
} from '../../runtime/index.ts'
import { type LostVolumePolicy, readLostVolumePolicy, WAIT } from '../../volumes/lost-volume-policy.ts'
import { existsOnlyOn, isReachableFrom, possibleNodeNamesOf } from '../../volumes/node-affinity.ts'
import { type LostVolumePlan, planLostVolume, VOLUME_LOST } from './plan-lost-volume.ts'

export interface LostVolumesOptions extends ControllerDeps {
  /** The policy of classes that set none. Default: wait. */
  readonly defaultPolicy?: LostVolumePolicy
  /** Default: a recorder of the component `lost-volumes`, which the controller runs itself. */
  readonly events?: EventRecorder
}

type Volume = Readonly<Stored<PersistentVolume>>
type Claim = Readonly<Stored<PersistentVolumeClaim>>
type StoredNode = Readonly<Stored<Node>>

const NAME = 'lost-volumes'
/** Few, so that the volumes of a lost node do not delay other requests. */
const WORKERS = 2
const HOSTNAME_LABEL = 'kubernetes.io/hostname'
const BY_NODE = 'lost-volumes: node'
const BY_CLASS = 'lost-volumes: class'
const BY_VOLUME = 'lost-volumes: volume'
const BY_HOSTNAME = 'lost-volumes: hostname'
const LOST = 'lost-volumes: lost'

export function createLostVolumesController(
  options: LostVolumesOptions,
): Runnable & { readonly queues: readonly WorkQueue[] } {
  const { client, caches, clock, random, log, metrics, defaultPolicy = WAIT } = options
  const [volumes, claims] = [caches.of(persistentVolumeKind), caches.of(persistentVolumeClaimKind)]
  const [nodes, classes] = [caches.of(nodeKind), caches.of(storageClassKind)]
  const attachments = caches.of(volumeAttachmentKind)
  const recorder = createEventRecorder({ client, clock, random, log, component: NAME })
  const events = options.events ?? recorder
  volumes.addIndex(BY_NODE, possibleNodeNamesOf)
  volumes.addIndex(BY_CLASS, ({ spec }) => [spec?.storageClassName ?? ''])
  attachments.addIndex(BY_VOLUME, ({ spec }) => [spec.source.persistentVolumeName ?? ''])
  nodes.addIndex(LOST, (node) => (lostSince(node) === undefined ? [] : [LOST]))
  nodes.addIndex(BY_HOSTNAME, ({ metadata }) => [metadata.labels?.[HOSTNAME_LABEL] ?? metadata.name])

  function findNode(volume: Volume): StoredNode | undefined {
    const candidates = possibleNodeNamesOf(volume).flatMap((name) =>
      [nodes.get({ name }) ?? [], nodes.byIndex(BY_HOSTNAME, name)].flat(),
    )
    const node = candidates.find((candidate) => existsOnlyOn(volume, identify(candidate)))
    // Two nodes may have the same hostname.
    if (!node || lostSince(node) === undefined) return node
    const isShared = nodes
      .list()
      .some((other) => other.metadata.name !== node.metadata.name && isReachableFrom(volume, identify(other)))
    return isShared ? undefined : node
  }

  function findClaim({ metadata, spec }: Volume): Claim | undefined {
    const { namespace, name = '', uid } = spec?.claimRef ?? {}
    const claim = claims.get({ namespace, name })
    return claim && claim.metadata.uid === uid && claim.spec?.volumeName === metadata.name ? claim : undefined
  }

  /** A policy that cannot be parsed counts as wait, regardless of the default. `stowage doctor` reports it. */
  function policyOf({ spec }: Volume): LostVolumePolicy {
    const storageClass = classes.get({ name: spec?.storageClassName ?? '' })
    const parsed = storageClass && readLostVolumePolicy(storageClass)
    if (!parsed) return defaultPolicy
    return parsed.is === 'policy' ? parsed.policy : WAIT
  }

  const planFor = (volume: Volume, node: StoredNode | undefined, claim: Claim | undefined): LostVolumePlan =>
    planLostVolume({
      volume,
      claim,
      node,
      policy: policyOf(volume),
      attachedTo: attachments.byIndex(BY_VOLUME, volume.metadata.name)[0]?.spec.nodeName,
      nowMs: clock.nowMs(),
    })

  async function reconcile(name: ObjectKey): Promise<Outcome> {
    const volume = volumes.get({ name })
    if (!volume) return done
    try {
      const claim = findClaim(volume)
      return await apply(planFor(volume, findNode(volume), claim), volume, claim)
    } catch (error) {
      if (isNotFound(error)) return done
      if (isConflict(error)) return backOff('an object changed during the reconcile')
      throw error
    }
  }

  async function apply(plan: LostVolumePlan, volume: Volume, claim: Claim | undefined): Promise<Outcome> {
    switch (plan.do) {
      case 'nothing':
        return done
      case 'wait':
        return plan.afterMs === undefined ? stuck(plan.message) : retryAfter(plan.afterMs, plan.message)
      case 'mark':
      case 'unmark':
        return writeConditions(claim!, plan)
      case 'delete claim':
      case 'delete volume':
        return deleteAfterReading(volume)
    }
  }

  async function writeConditions(
    claim: Claim,
    plan: Extract<LostVolumePlan, { do: 'mark' | 'unmark' }>,
  ): Promise<Outcome> {
    const { namespace, name, uid, resourceVersion } = claim.metadata
    const body = { metadata: { uid, resourceVersion }, status: { conditions: plan.conditions } }
    const patch = { type: 'merge' as const, body }
    const written = await client.patch(persistentVolumeClaimKind, { namespace, name }, patch, { subresource: 'status' })
    claims.applyWriteResult(written)
    const { message } = plan
    if (plan.do === 'mark')
      events.record(persistentVolumeClaimKind, written, { type: 'Warning', reason: VOLUME_LOST, message })
    else events.record(persistentVolumeClaimKind, written, { type: 'Normal', reason: 'VolumeReturned', message })
    return reconcile(claim.spec?.volumeName ?? '')
  }

  /** Reads node, volume and claim from the server and plans again: the caches may be behind, and a deletion is final. */
  async function deleteAfterReading(cached: Volume): Promise<Outcome> {
    const { name, uid } = cached.metadata
    const volume = await client.get(persistentVolumeKind, { name })
    if (volume.metadata.uid !== uid) return backOff('the volume was replaced during the reconcile')
    const cachedNode = findNode(volume)
    const node = cachedNode && (await find(client, nodeKind, { name: cachedNode.metadata.name }))
    if (node) nodes.applyWriteResult(node)
    const { namespace, name: claimName = '', uid: claimUid } = volume.spec?.claimRef ?? {}
    const foundClaim =
      claimName === '' ? undefined : await find(client, persistentVolumeClaimKind, { namespace, name: claimName })
    const claim =
      foundClaim?.metadata.uid === claimUid && foundClaim?.spec?.volumeName === name ? foundClaim : undefined
    const plan = planFor(volume, node && existsOnlyOn(volume, identify(node)) ? node : undefined, claim)
    if (plan.do === 'delete claim') return deleteClaim(claim!, plan.message)
    if (plan.do === 'delete volume') return deleteVolume(volume, plan)
    return plan.do === 'wait' ? apply(plan, volume, claim) : backOff('an object changed during the reconcile')
  }

  async function deleteClaim(claim: Claim, cause: string): Promise<Outcome> {
    const { namespace, name, uid } = claim.metadata
    const message = `Deleting the claim: ${cause}, and the time of the policy for lost volumes is up`
    events.record(persistentVolumeClaimKind, claim, { type: 'Warning', reason: 'LostVolumeDeleted', message })
    const remaining = await client.delete(persistentVolumeClaimKind, { namespace, name }, { uid })
    if (remaining) claims.applyWriteResult(remaining)
    return stuck(`waiting until the claim ${namespace}/${name} is deleted`)
  }

  async function deleteVolume(
    volume: Volume,
    { keptFinalizers, message }: Extract<LostVolumePlan, { do: 'delete volume' }>,
  ): Promise<Outcome> {
    const { name, uid, deletionTimestamp } = volume.metadata
    if (!deletionTimestamp) {
      events.record(persistentVolumeKind, volume, {
        type: 'Warning',
        reason: 'LostVolumeDeleted',
        message: `Deleting the volume without its driver: ${message}. If the node returns, "stowage leaks" lists the storage of the volume`,
      })
      if (!(await client.delete(persistentVolumeKind, { name }, { uid }))) return done
    }
    const current = await client.get(persistentVolumeKind, { name })
    const { resourceVersion } = current.metadata
    const finalizers = current.metadata.finalizers?.filter((finalizer) => keptFinalizers.includes(finalizer)) ?? []
    const body = { metadata: { uid, resourceVersion, finalizers } }
    await client.patch(persistentVolumeKind, { name }, { type: 'merge', body })
    return finalizers.length === 0
      ? done
      : stuck(`waiting until the finalizers of the volume are removed: ${finalizers.join(', ')}`)
  }

  const isMarked = ({ status }: Readonly<PersistentVolumeClaim>): boolean =>
    status?.conditions?.some(({ type }) => type === VOLUME_LOST) ?? false
  const keysOfVolume = (volume: Volume): string[] => {
    const hasLostNodes = nodes.byIndex(LOST, LOST).length > 0
    const claim = findClaim(volume)
    return (hasLostNodes && lostSince(findNode(volume)) !== undefined) || (claim && isMarked(claim))
      ? [volume.metadata.name]
      : []
  }
  const volumesOf = ({ metadata }: StoredNode): string[] => {
    const names = new Set([metadata.name, metadata.labels?.[HOSTNAME_LABEL] ?? metadata.name])
    return [...names].flatMap((name) => volumes.byIndex(BY_NODE, name)).map((volume) => volume.metadata.name)
  }

  const controller = createController({
    name: NAME,
    operation: { component: NAME, name: 'RecoverVolume', cache: volumes },
    clock,
    random,
    log,
    metrics,
    workers: WORKERS,
    sources: [
      source({ cache: volumes, keysOf: keysOfVolume }),
      source({
        cache: nodes,
        keysOf: volumesOf,
        matters: (next, old) => lostSince(next) !== lostSince(old),
        mayNeedReconcile: (node) => lostSince(node) !== undefined,
      }),
      source({
        cache: claims,
        keysOf: ({ spec }) => {
          const volume = volumes.get({ name: spec?.volumeName ?? '' })
          return volume ? keysOfVolume(volume) : []
        },
      }),
      source({
        cache: classes,
        keysOf: ({ metadata }) => volumes.byIndex(BY_CLASS, metadata.name).flatMap(keysOfVolume),
        matters: (next, old) =>
          JSON.stringify(readLostVolumePolicy(next)) !== JSON.stringify(readLostVolumePolicy(old)),
      }),
      source({
        cache: attachments,
        keysOf: ({ spec }) => {
          const volume = volumes.get({ name: spec.source.persistentVolumeName ?? '' })
          return volume ? keysOfVolume(volume) : []
        },
        matters: () => false,
      }),
    ],
    reconcile,
  })
  metrics?.queues.add(controller.queue)
  return withRecorders(
    [{ queues: [controller.queue], run: (signal) => controller.run(signal) }],
    options.events ? [] : [recorder],
  )
}

const identify = ({ metadata: { name, labels = {} } }: StoredNode) => ({ name, labels })
