// Rules `no operation` and `stale operation`: at rest, every object that is not ready, and that a component is responsible for,
// has an operation with a reason and a message in the registry of a process. Every listed operation belongs to an object that is
// not ready, or is one of those that wait although their object is ready (isExpected).

import { isFenced, lostSince } from '../../api/kinds/node/fencing.ts'
import type { Operation } from '../../api/kinds/operation/operation-schema.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { compareQuantities } from '../../api/quantity.ts'
import { resizeCondition } from '../../volumes/resize-status.ts'
import type { System } from '../engine/system.ts'
import { assetOf, type ObjectOf, type View } from '../engine/view.ts'
import { DRIVERS } from '../plan/catalog.ts'
import { agentOf } from '../plan/process-names.ts'
import { claimsOf, findDriverVolume, isDeleting, type Problem, parseAsset } from './context.ts'
import type { Exemptions } from './exemptions.ts'
import { hasResizer } from './feasibility.ts'
import { maximumOf } from './growth.ts'

type Operations = Pick<System, 'operationRegistries' | 'nodes'>
/** Whether the driver lost the volume with its state, and does not have it again. */
type IsLost = (asset: string) => boolean

/** Registries serve their listeners at most once per second; the checker reads them as often. */
const READ_INTERVAL_MS = 1_000
/** Of the finalizers and annotations that the simulated users set. */
const USER_PREFIX = 'sim.example/'
const SCHEDULERS = ['default-scheduler', 'stowage-scheduler']

/** Reads the registries during the run, as listeners do: an operation that was never listed cannot become stale. */
export function followOperations({ cluster, operationRegistries }: System, view: View): void {
  let readMs = 0
  view.onCommit(() => {
    if (cluster.simulation.nowMs - readMs < READ_INTERVAL_MS) return
    readMs = cluster.simulation.nowMs
    for (const operations of operationRegistries.values()) operations.list()
  })
}

export function findOperationProblems(system: System, view: View, exemptions: Pick<Exemptions, 'isLost'>): Problem[] {
  const operations = listOperations(system)
  const isLost: IsLost = (asset) => exemptions.isLost(asset) && !findDriverVolume(system, asset)
  const unreadyObjects = findUnreadyObjects(view)
  return [
    ...unreadyObjects.flatMap((object) => findMissingOperations(object, operations, system, view)),
    ...operations
      .filter((operation) => !isExpected(operation, unreadyObjects, { view, isLost }))
      .map((operation): Problem => ({ rule: 'stale operation', text: `no object waits for ${describe(operation)}` })),
  ]
}

/**
 * Returns the operations that the server lists at rest: those in the registries of all processes except the agents of machines
 * that are lost for good. The registry of such an agent retains its last operations, but the server removes the operations of a
 * process that has not reported for SILENCE_MS_MAX (apiserver/operations/operation-board.ts). The registries of other processes
 * count even between a crash and the restart, because these processes run at rest.
 */
const listOperations = ({ operationRegistries, nodes }: Operations): Operation[] => {
  const lostAgents = new Set(
    [...nodes.values()].filter(({ isLostForGood }) => isLostForGood).map(({ name }) => agentOf(name)),
  )
  return [...operationRegistries].flatMap(([process, registry]) => (lostAgents.has(process) ? [] : registry.list()))
}

interface UnreadyObject {
  readonly kind: string
  readonly key: string
  readonly uid: string
  /** A predicate, such as `is Pending`. */
  readonly state: string
}

function findMissingOperations(
  object: UnreadyObject,
  operations: readonly Operation[],
  system: System,
  view: View,
): Problem[] {
  const { kind, key, uid, state } = object
  if (!hasComponent(object, system, view)) return []
  const ownOperations = operations.filter(
    (operation) => operation.object?.kind === kind && operation.object.uid === uid,
  )
  if (ownOperations.some(({ reason, message }) => reason && message)) return []
  const listed = ownOperations.length === 0 ? 'none' : ownOperations.map(describe).join('; ')
  return [{ rule: 'no operation', text: `${kind} ${key} ${state}, and no operation names a reason. Listed: ${listed}` }]
}

/** Whether a component of the system is responsible for the object. */
function hasComponent({ kind, key }: UnreadyObject, system: System, view: View): boolean {
  if (kind === 'Pod') {
    const { nodeName, schedulerName = SCHEDULERS[0]! } = view.pods.get(key)?.spec ?? {}
    return nodeName ? view.nodes.has(nodeName) : SCHEDULERS.includes(schedulerName)
  }
  const claim = kind === 'PersistentVolumeClaim' ? view.claims.get(key) : undefined
  if (claim && isHeldByUser(claim)) return false
  if (!claim || isDeleting(claim) || claim.status?.phase !== 'Bound') return true
  const { driver } = parseAsset(assetOfClaim(claim, view))
  return DRIVERS.includes(driver) && hasResizer(system, driver)
}

/** Whether the deletion of the claim waits only for users, who have not removed their finalizers. */
const isHeldByUser = (claim: ObjectOf<'claim'>): boolean =>
  isDeleting(claim) && (claim.metadata.finalizers ?? []).every((finalizer) => finalizer.startsWith(USER_PREFIX))

/** Whether the object of the operation is not ready, or the operation waits although it is, such as `Attach` of a pod's volume. */
function isExpected(
  { operation, object }: Operation,
  unreadyObjects: readonly UnreadyObject[],
  { view, isLost }: { readonly view: View; readonly isLost: IsLost },
): boolean {
  if (unreadyObjects.some(({ kind, uid }) => kind === object?.kind && uid === object.uid)) return true
  if (operation === 'Publish') return waitsAlthoughRunning(object?.uid, view, isLost)
  if (operation === 'AutoGrow') return mayGrow(object?.uid, view)
  if (operation === 'Modify') return requestsOtherAmounts(object?.uid, view)
  if (object?.kind === 'Node') return isFenced(view.nodes.get(object.name ?? ''))
  if (operation === 'RecoverVolume') return [...view.nodes.values()].some((node) => lostSince(node) !== undefined)
  return (
    operation === 'Attach' &&
    object?.kind === 'PersistentVolume' &&
    [...view.pods.values()].some(
      (pod) =>
        podState(pod) !== undefined && claimsOf(pod, view).some(({ claim }) => claim?.spec?.volumeName === object.name),
    )
  )
}

/** A claim that should grow and cannot is listed, although it is bound. */
const mayGrow = (claimUid: string | undefined, view: View): boolean => {
  const claim = view.claimOfUid(claimUid ?? '')
  return claim !== undefined && !isDeleting(claim) && maximumOf(claim) !== undefined
}

/**
 * A claim that requests iops or throughput can bind to a volume of a driver that cannot modify volumes. Its status then has no
 * modification, and the operation reports that the request remains without effect.
 */
const requestsOtherAmounts = (claimUid: string | undefined, view: View): boolean => {
  const claim = view.claimOfUid(claimUid ?? '')
  if (!claim || isDeleting(claim)) return false
  const [requests, capacity] = [claim.spec?.resources?.requests, claim.status?.capacity]
  return IO_RESOURCES.some((name) => {
    const requestedAmount = amountOf(requests, name)
    return requestedAmount !== undefined && compareQuantities(amountOf(capacity, name) ?? '0', requestedAmount) !== 0
  })
}

/**
 * A Running pod stays Running when its node or agent restarts. Its volume is not mounted again if the claim is being deleted or
 * the driver has lost the volume: NodeStageVolume then returns NOT_FOUND, which the operation reports.
 */
const waitsAlthoughRunning = (podUid: string | undefined, view: View, isLost: IsLost): boolean =>
  [...view.pods.values()].some(
    (pod) =>
      pod.metadata.uid === podUid &&
      claimsOf(pod, view).some(
        ({ claim }) => claim && (isDeleting(claim) || (!hasTerminated(pod) && isLost(assetOfClaim(claim, view)))),
      ),
  )

const assetOfClaim = ({ spec }: ObjectOf<'claim'>, view: View): string =>
  assetOf(view.volumes.get(spec?.volumeName ?? '')) ?? ''

const describe = ({ component, process, operation, phase, reason, message, object }: Operation): string =>
  `${component} ${operation} ${object?.kind} ${object?.name} (${object?.uid}) of ${process}: ${phase}, ${reason}, "${message}"`

function findUnreadyObjects(view: View): UnreadyObject[] {
  const find = <T extends { readonly metadata: { readonly uid?: string } }>(
    kind: string,
    objects: ReadonlyMap<string, T>,
    stateOf: (object: T) => string | undefined,
  ): UnreadyObject[] =>
    [...objects].flatMap(([key, object]) => {
      const state = stateOf(object)
      return state === undefined ? [] : [{ kind, key, uid: object.metadata.uid ?? '', state }]
    })
  return [
    ...find('PersistentVolumeClaim', view.claims, claimState),
    ...find('Pod', view.pods, podState),
    ...find('PersistentVolume', view.volumes, volumeState),
    ...find('VolumeAttachment', view.attachments, attachmentState),
    ...find('VolumeAttributesClass', view.attributesClasses, deletionState),
    ...find('Namespace', view.namespaces, deletionState),
  ]
}

const deletionState = (object: Parameters<typeof isDeleting>[0]): string | undefined =>
  isDeleting(object) ? 'is being deleted' : undefined

function claimState(claim: ObjectOf<'claim'>): string | undefined {
  const { spec, status } = claim
  if (isDeleting(claim)) return 'is being deleted'
  if (status?.phase !== 'Bound') return `is ${status?.phase}`
  const [requested, capacity] = [spec?.resources?.requests?.storage ?? '0', status.capacity?.storage ?? '0']
  if (compareQuantities(capacity, requested) < 0) return `has ${capacity} and requests ${requested}`
  if (resizeCondition(claim, 'FileSystemResizePending')) return 'waits for its node to expand it'
  if (status.modifyVolumeStatus) return `has the modification status ${status.modifyVolumeStatus.status}`
  return undefined
}

function podState(pod: ObjectOf<'pod'>): string | undefined {
  if (isDeleting(pod)) return 'is being deleted'
  if (hasTerminated(pod) || pod.status?.phase === 'Running') return undefined
  return pod.spec?.nodeName ? `does not run on ${pod.spec.nodeName}` : 'has no node'
}

function volumeState(volume: ObjectOf<'volume'>): string | undefined {
  if (isDeleting(volume)) return 'is being deleted'
  const { phase } = volume.status ?? {}
  return phase === 'Failed' || phase === 'Released' ? `is ${phase}` : undefined
}

function attachmentState(attachment: ObjectOf<'attachment'>): string | undefined {
  if (isDeleting(attachment)) return 'is being deleted'
  return attachment.status?.attached ? undefined : 'is not attached'
}
