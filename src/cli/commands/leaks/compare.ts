// Compares a driver's inventory, and the files, loop devices and mounts of this machine, with the objects in the API server,
// and returns the differences as findings. The caller reads the inventory before the cluster, so that a volume created in
// between is never reported as an orphan. check-volumes.ts checks with the driver whether volumes that it did not list exist.
import { createHash } from 'node:crypto'
import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { NODE_ID_ANNOTATION } from '../../../volumes/attachment-names.ts'
import { isDeletionRequested } from '../../../volumes/deletion-requested.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import { formatDuration, formatSize } from '../../output/units.ts'
import { bytesOf } from '../../space/bytes.ts'
import type { Cluster } from './cluster.ts'
import type { DriverProcess, DriverVolume, Inventory } from './inventory.ts'
import type { Machine } from './machine.ts'
import {
  explainLostOwner,
  explainSnapshotOwner,
  explainVolumeOwner,
  findLostVolumes,
  findProvisioningClaims,
  handleOfContent,
  type Owners,
} from './owners.ts'

export const REASONS = [
  'VolumeWithoutPV',
  'PVWithoutVolume',
  'HandleOfTwoPVs',
  'WrongSize',
  'WrongAttributes',
  'PublishedWithoutAttachment',
  'AttachmentNotPublished',
  'SnapshotWithoutContent',
  'ContentWithoutSnapshot',
  'FileWithoutVolume',
  'LoopDeviceWithoutVolume',
  'MountWithoutVolume',
  'MountWithoutPod',
] as const
export type LeakReason = (typeof REASONS)[number]

export interface Leak {
  readonly reason: LeakReason
  readonly driver: string
  /** The handle of the volume or snapshot. Absent for a file that belongs to neither. */
  readonly handle?: string
  /** The PV, VolumeAttachment or VolumeSnapshotContent. */
  readonly object?: string
  readonly node?: string
  /** The file, device or mount point. */
  readonly path?: string
  readonly sizeBytes?: number
  readonly createdAt?: string
  readonly message: string
  /** Why --adopt and --delete leave the volume or snapshot. Absent if they change it. */
  readonly leftBecause?: string
  /** Why --delete leaves the volume, although --adopt creates a PV for it. */
  readonly notDeletedBecause?: string
}

export interface CompareOptions {
  readonly nowMs: number
  /** `--adopt` and `--delete` leave younger volumes and snapshots. */
  readonly gracePeriodMs: number
  readonly namedHandles: ReadonlySet<string>
}

export interface Comparison {
  readonly leaks: readonly Leak[]
  /** PVs that the driver has not listed, which must be confirmed with the driver. */
  readonly unlisted: readonly PvOfDriver[]
  /** The number of PVs on nodes whose driver process was not read. */
  readonly unreachable: number
  /** The number of the driver's other PVs. */
  readonly checked: number
}

/** A PV of the driver, listed by it or not. */
export interface PvOfDriver {
  readonly volume: Readonly<Stored<PersistentVolume>>
  readonly handle: string
}

export function compareDriver(
  inventory: Inventory,
  cluster: Cluster,
  machine: Machine,
  options: CompareOptions,
): Comparison {
  const { driver, volumes } = inventory
  const driverPvs = cluster.volumes.flatMap((volume) => {
    const { csi } = volume.spec ?? {}
    return csi?.driver === driver ? [{ volume, handle: csi.volumeHandle }] : []
  })
  const inScope = driverPvs.filter(({ volume }) => isInScope(volume, inventory))
  const owners = findProvisioningClaims(driver, cluster)
  return {
    leaks: [
      ...(volumes ? findOrphans({ inventory, cluster, machine, owners, options }) : []),
      ...findSharedHandles(driver, driverPvs),
      ...inScope.flatMap((entry) => findWrongFields(driver, entry, volumes?.get(entry.handle), cluster)),
      ...findAttachmentDifferences(inventory, cluster, driverPvs),
      ...findSnapshotDifferences(inventory, cluster, options),
      ...findMachineLeaks(inventory, cluster, machine),
    ],
    unlisted: inScope.filter(({ volume, handle }) => !volumes?.has(handle) && !isBeingDeleted(volume)),
    unreachable: driverPvs.length - inScope.length,
    checked: inScope.length,
  }
}

/**
 * Returns whether one of the processes would list this volume. A process that lists only volumes of its own node serves that
 * node alone.
 */
function isInScope(volume: Readonly<PersistentVolume>, { processes, volumes }: Inventory): boolean {
  return processes.some((process) => {
    if (!process.segments || !servesOneNode(process, volumes)) return true
    return isReachableFrom(volume, { name: '', labels: process.segments })
  })
}

const servesOneNode = (process: DriverProcess, volumes: Inventory['volumes']): boolean =>
  [...(volumes?.values() ?? [])]
    .filter((volume) => volume.process === process && volume.topology.length > 0)
    .every(({ topology }) => topology.some((segments) => isSubset(segments, process.segments ?? {})))

const isSubset = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean =>
  Object.entries(a).every(([key, value]) => b[key] === value)

interface OrphanInput {
  readonly inventory: Inventory
  readonly cluster: Cluster
  readonly machine: Machine
  readonly owners: Owners
  readonly options: CompareOptions
}

function findOrphans({ inventory, cluster, machine, owners, options }: OrphanInput): Leak[] {
  const { driver, volumes } = inventory
  const knownHandles = new Set([
    ...cluster.volumes.flatMap(({ spec }) => (spec?.csi?.driver === driver ? [spec.csi.volumeHandle] : [])),
    ...listInlineHandles(driver, cluster),
  ])
  const lostVolumes = findLostVolumes(driver, cluster)
  return [...(volumes?.values() ?? [])]
    .filter(({ handle }) => !knownHandles.has(handle))
    .map((volume) => {
      const { handle, sizeBytes } = volume
      const details = machine.details.get(handle)
      const identity = { driver, handle, ...(details ? { name: details.name } : {}) }
      const notDeletedBecause = explainLostOwner(identity, lostVolumes, options)
      const leftBecause =
        explainVolumeOwner(identity, owners, options) ??
        explainInUse(volume, machine) ??
        explainGracePeriod('volume', details?.createdAtMs, options)
      return {
        reason: 'VolumeWithoutPV',
        driver,
        handle,
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
        ...(details?.createdAtMs === undefined ? {} : { createdAt: timestamp(details.createdAtMs) }),
        message: details
          ? `no PV refers to this volume, which was created as ${details.name}`
          : 'no PV refers to this volume',
        ...(leftBecause === undefined ? {} : { leftBecause }),
        ...(notDeletedBecause === undefined ? {} : { notDeletedBecause }),
      } satisfies Leak
    })
}

/** Handles of the inline volumes of pods, which have no PV. The kubelet derives them from the pod and the volume. */
const listInlineHandles = (driver: string, { pods }: Cluster): string[] =>
  pods.flatMap(({ metadata, spec }) =>
    (spec?.volumes ?? []).flatMap(({ name, csi }) =>
      csi?.driver === driver ? [`csi-${createHash('sha256').update(`${metadata.uid}${name}`).digest('hex')}`] : [],
    ),
  )

function explainInUse({ handle, publishedNodeIds = [] }: DriverVolume, { nodeVolumes }: Machine): string | undefined {
  if (publishedNodeIds.length > 0) return `the volume is published to ${publishedNodeIds.join(', ')}`
  const mount = nodeVolumes.find((volume) => volume.handle === handle)
  return mount && `the volume is mounted at ${mount.path}`
}

const explainGracePeriod = (
  kind: 'volume' | 'snapshot',
  createdAtMs: number | undefined,
  { nowMs, gracePeriodMs }: CompareOptions,
): string | undefined =>
  createdAtMs !== undefined && nowMs - createdAtMs < gracePeriodMs
    ? `the ${kind} is younger than the grace period of ${formatDuration(gracePeriodMs)}`
    : undefined

function findSharedHandles(driver: string, driverPvs: readonly PvOfDriver[]): Leak[] {
  const namesByHandle = new Map<string, string[]>()
  for (const { handle, volume } of driverPvs)
    namesByHandle.set(handle, [...(namesByHandle.get(handle) ?? []), volume.metadata.name])
  return [...namesByHandle]
    .filter(([, names]) => names.length > 1)
    .map(([handle, names]) => ({
      reason: 'HandleOfTwoPVs',
      driver,
      handle,
      object: names[0]!,
      message: `the PVs ${names.join(', ')} refer to the same volume; deleting one of them deletes the data of all`,
    }))
}

function findWrongFields(
  driver: string,
  { volume, handle }: PvOfDriver,
  listed: DriverVolume | undefined,
  cluster: Cluster,
): Leak[] {
  if (!listed) return []
  const common = { driver, handle, object: volume.metadata.name, ...createdAtOf(volume) }
  const leaks: Leak[] = []
  const sizeBytes = bytesOf(volume.spec?.capacity?.storage)
  if (listed.sizeBytes !== undefined && sizeBytes !== undefined && sizeBytes !== listed.sizeBytes) {
    if (!isExpanding(volume, cluster))
      leaks.push({
        ...common,
        reason: 'WrongSize',
        sizeBytes: listed.sizeBytes,
        message: `the PV has ${formatSize(sizeBytes)}, the driver reports ${formatSize(listed.sizeBytes)}`,
      })
  }
  const attributes = volume.spec?.csi?.volumeAttributes ?? {}
  const keys = Object.keys(listed.context).filter((key) => attributes[key] !== listed.context[key])
  if (keys.length > 0)
    leaks.push({
      ...common,
      reason: 'WrongAttributes',
      ...(listed.sizeBytes === undefined ? {} : { sizeBytes: listed.sizeBytes }),
      message: `volumeAttributes of the PV differ from the driver's volume_context in ${keys.sort().join(', ')}`,
    })
  return leaks
}

/** Returns whether the sizes may differ because an expansion is in progress. */
function isExpanding({ spec, metadata }: Readonly<Stored<PersistentVolume>>, { claims, operations }: Cluster): boolean {
  const claim = claims.find(({ metadata: { uid } }) => uid === spec?.claimRef?.uid)
  const uids = [metadata.uid, ...(claim ? [claim.metadata.uid] : [])]
  if (operations.some(({ object, component }) => component === 'resizer' && uids.includes(object.uid ?? '')))
    return true
  if (claim?.status?.allocatedResourceStatuses?.storage) return true
  const requestedBytes = bytesOf(claim?.spec?.resources?.requests?.storage)
  const volumeBytes = bytesOf(spec?.capacity?.storage)
  return requestedBytes !== undefined && volumeBytes !== undefined && requestedBytes > volumeBytes
}

function findAttachmentDifferences(
  { driver, volumes }: Inventory,
  { attachments, csiNodes, missingOwnerRules }: Cluster,
  driverPvs: readonly PvOfDriver[],
): Leak[] {
  if (missingOwnerRules.some((rule) => rule.includes('volumeattachments'))) return []
  const handlesByName = new Map(driverPvs.map(({ volume, handle }) => [volume.metadata.name, handle]))
  const nodeIds = new Map(
    csiNodes.flatMap(({ metadata, spec }) =>
      (spec?.drivers ?? []).flatMap(({ name, nodeID }) => (name === driver ? [[metadata.name, nodeID] as const] : [])),
    ),
  )
  const driverAttachments = attachments
    .filter(({ spec }) => spec.attacher === driver)
    .map(({ metadata, spec, status }) => ({
      name: metadata.name,
      isAttached: status?.attached === true && metadata.deletionTimestamp === undefined,
      node: spec.nodeName,
      nodeId: nodeIds.get(spec.nodeName) ?? metadata.annotations?.[NODE_ID_ANNOTATION],
      handle:
        handlesByName.get(spec.source.persistentVolumeName ?? '') ?? spec.source.inlineVolumeSpec?.csi?.volumeHandle,
    }))
  const attachedPairs = new Set(driverAttachments.map(({ handle, nodeId }) => `${handle} ${nodeId}`))
  const published = [...(volumes?.values() ?? [])].flatMap(({ handle, publishedNodeIds = [] }) =>
    publishedNodeIds.map((nodeId) => ({ handle, nodeId })),
  )
  return [
    ...published
      .filter(({ handle, nodeId }) => !attachedPairs.has(`${handle} ${nodeId}`))
      .map(
        ({ handle, nodeId }): Leak => ({
          reason: 'PublishedWithoutAttachment',
          driver,
          handle,
          node: nodeId,
          message: `the driver reports the volume as published to ${nodeId}, but no VolumeAttachment exists for it`,
        }),
      ),
    ...driverAttachments.flatMap(({ name, isAttached, node, nodeId, handle }): Leak[] => {
      const publishedNodeIds = handle === undefined ? undefined : volumes?.get(handle)?.publishedNodeIds
      if (!isAttached || nodeId === undefined || !publishedNodeIds || publishedNodeIds.includes(nodeId)) return []
      const message = `status.attached is true, but the driver has not published the volume to ${nodeId}`
      return [{ reason: 'AttachmentNotPublished', driver, handle: handle!, object: name, node, message }]
    }),
  ]
}

function findSnapshotDifferences(
  { driver, snapshots, processes }: Inventory,
  cluster: Cluster,
  options: CompareOptions,
): Leak[] {
  const { contents } = cluster
  if (!snapshots || !contents) return []
  const driverContents = contents.filter(({ spec }) => spec?.driver === driver)
  const knownHandles = new Set(driverContents.map(handleOfContent))
  const ownerReason = explainSnapshotOwner(driver, cluster)
  const orphans = [...snapshots.values()].filter(({ handle }) => !knownHandles.has(handle))
  const missing = driverContents.filter((content) => {
    const handle = handleOfContent(content)
    return handle !== undefined && !snapshots.has(handle) && content.metadata.deletionTimestamp === undefined
  })
  return [
    ...orphans.map(({ handle, sourceHandle, sizeBytes, createdAt, groupId }): Leak => {
      const leftBecause =
        ownerReason ??
        (groupId ? `the snapshot belongs to the group snapshot ${groupId}, which is deleted as a whole` : undefined) ??
        explainGracePeriod('snapshot', createdAt === undefined ? undefined : Date.parse(createdAt), options)
      return {
        reason: 'SnapshotWithoutContent',
        driver,
        handle,
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
        ...(createdAt === undefined ? {} : { createdAt }),
        message: `no VolumeSnapshotContent refers to this snapshot of the volume ${sourceHandle}`,
        ...(leftBecause === undefined ? {} : { leftBecause }),
      }
    }),
    // A process that serves one node lists only the snapshots of that node.
    ...(processes.some(({ segments }) => segments) ? [] : missing).map(
      (content): Leak => ({
        reason: 'ContentWithoutSnapshot',
        driver,
        handle: handleOfContent(content)!,
        object: content.metadata.name,
        ...createdAtOf(content),
        message: 'the driver does not list the snapshot of this VolumeSnapshotContent',
      }),
    ),
  ]
}

function findMachineLeaks(
  { driver, volumes, processes }: Inventory,
  { pods, missingOwnerRules }: Cluster,
  machine: Machine,
): Leak[] {
  const pools = processes.flatMap(({ pool }) => pool ?? [])
  const podUids = new Set(pods.map(({ metadata }) => metadata.uid))
  const canListPods = !missingOwnerRules.some((rule) => rule.includes('pods'))
  const mounts = machine.nodeVolumes.filter((volume) => volume.driver === driver)
  const lacksVolume = (handle: string) => volumes !== undefined && !volumes.has(handle) && !INLINE_HANDLE.test(handle)
  return [
    ...machine.unrecordedFiles
      .filter(({ path }) => pools.some((pool) => path.startsWith(`${pool}/`)))
      .map(
        ({ path, sizeBytes, createdAtMs }): Leak => ({
          reason: 'FileWithoutVolume',
          driver,
          path,
          ...(sizeBytes === undefined ? {} : { sizeBytes }),
          ...(createdAtMs === undefined ? {} : { createdAt: timestamp(createdAtMs) }),
          message: "this file in the driver's pool belongs to no volume or snapshot",
        }),
      ),
    ...machine.loops
      .filter(({ handle, file }) => lacksVolume(handle) && pools.some((pool) => file.startsWith(`${pool}/`)))
      .map(
        ({ device, handle, file }): Leak => ({
          reason: 'LoopDeviceWithoutVolume',
          driver,
          handle,
          path: device,
          message: `the loop device is backed by ${file}, but the driver has no such volume`,
        }),
      ),
    ...mounts
      .filter(({ handle }) => lacksVolume(handle))
      .map(
        ({ handle, path }): Leak => ({
          reason: 'MountWithoutVolume',
          driver,
          handle,
          path,
          message: 'the volume is mounted on this node, but the driver does not have it',
        }),
      ),
    ...mounts
      .filter(
        ({ handle, podUid }) => canListPods && podUid !== undefined && !podUids.has(podUid) && !lacksVolume(handle),
      )
      .map(
        ({ handle, path, podUid }): Leak => ({
          reason: 'MountWithoutPod',
          driver,
          handle,
          path,
          message: `the volume is mounted on this node for the pod with the UID ${podUid}, which does not exist`,
        }),
      ),
  ]
}

/** The handles that the kubelet gives to inline volumes. Drivers need not list these volumes. */
const INLINE_HANDLE = /^csi-[0-9a-f]{64}$/

/** Returns whether the driver is about to delete the volume of a PV, or has done so. */
export function isBeingDeleted(volume: Readonly<Stored<PersistentVolume>>): boolean {
  const { spec, status, metadata } = volume
  const isReleased = status?.phase === 'Released' || status?.phase === 'Failed'
  return (
    metadata.deletionTimestamp !== undefined ||
    isDeletionRequested(volume) ||
    (isReleased && spec?.persistentVolumeReclaimPolicy === 'Delete')
  )
}

export const createdAtOf = ({ metadata }: Readonly<{ metadata: { creationTimestamp?: string } }>) =>
  metadata.creationTimestamp === undefined ? {} : { createdAt: metadata.creationTimestamp }
