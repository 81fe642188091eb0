// Mounts one CSI volume for one pod, in the kubelet's order: attached, staged once per node, published for the pod, fsGroup
// applied. Each step is recorded before the driver is called and is idempotent. After a final error there is nothing to
// undo; after an uncertain one the step is undone later as if it had succeeded.

import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { KeyedLock } from '../../base/keyed-lock.ts'
import { type Client, find } from '../../client/index.ts'
import { CsiError, isUncertain } from '../../csi/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { attachedVolumeNameOf, attachmentNameOf } from '../../volumes/attachment-names.ts'
import { readCredentials } from '../../volumes/credentials.ts'
import { isReachableFrom, type NodeIdentity } from '../../volumes/node-affinity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { AgentPaths } from '../paths.ts'
import type { Drivers, RegisteredDriver } from '../registration/drivers.ts'
import { failedMount, VolumeProblem, waitingFor } from '../volume-problem.ts'
import { capabilityOf } from './capability.ts'
import type { CsiVolume, SecretRef } from './csi-volume.ts'
import type { VolumesInUse } from './in-use.ts'
import { type MountRecords, type Publication, type Staging, volumeKey } from './mount-records.ts'
import { groupOfPod, ownershipChange } from './ownership.ts'

export interface MountDeps {
  readonly nodeName: string
  readonly client: Client
  readonly csiDrivers: Cache<CSIDriver>
  readonly attachments: Cache<VolumeAttachment>
  readonly drivers: Drivers
  readonly records: MountRecords
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly inUse: VolumesInUse
  readonly metrics: AgentMetrics
  /** One operation per volume at a time. */
  readonly lock: KeyedLock
  /** Steps that this run of the agent has completed. */
  readonly done: StepsDone
  node(): NodeIdentity
  /** Whether the pod still needs its volumes; checked between two steps. */
  isWanted(uid: string): boolean
}

/** By volumeKey, and by `uid/volume`. */
export interface StepsDone {
  readonly staged: Set<string>
  readonly published: Set<string>
  /** Never published, or rejected with a final error: there is nothing to undo. */
  readonly neverPublished: Set<string>
}

export const emptySteps = (): StepsDone => ({ staged: new Set(), published: new Set(), neverPublished: new Set() })

/** The kubelet's timeout of CSI calls. */
export const CALL_TIMEOUT_MS = 120_000

export const publicationKey = ({ uid, volume }: Pick<Publication, 'uid' | 'volume'>) => `${uid}/${volume}`

/** Throws VolumeProblem. */
export async function mountCsiVolume(
  pod: Readonly<Pod>,
  volume: CsiVolume,
  deps: MountDeps,
  signal: AbortSignal,
): Promise<Publication> {
  const step = volume.mode === 'Block' ? 'MapVolume' : 'MountVolume'
  const driver = deps.drivers.get(volume.driver)
  const csiDriver = deps.csiDrivers.get({ name: volume.driver })
  if (!driver) throw notRegistered(volume, step, deps.drivers)
  if (volume.pv && !isReachableFrom(volume.pv, deps.node())) {
    throw failedMount(`${step}.NodeAffinity check failed for volume "${volume.volume}" : no matching NodeSelectorTerms`)
  }
  checkServed(volume, csiDriver, step)

  return deps.lock(volumeKey(volume), async () => {
    checkOnlyUser(pod, volume, deps)
    const attachment = attachmentOf(volume, csiDriver, deps)
    const publication = publicationOf(pod, volume, attachment?.metadata.name ?? '', deps)
    const metric = volume.mode === 'Block' ? 'map_volume' : 'volume_mount'
    return deps.metrics.during(volume.driver, metric, async () => {
      const operation = { pod, volume, publication, driver, csiDriver, attachment, deps, signal }
      await record(operation)
      if (attachment) await confirmAttached(attachment, operation)
      checkWanted(operation)
      await stage(operation)
      checkWanted(operation)
      await publish(operation)
      await applyFsGroup(operation)
      return publication
    })
  })
}

interface MountOperation {
  readonly pod: Readonly<Pod>
  readonly volume: CsiVolume
  readonly publication: Publication
  readonly driver: RegisteredDriver
  readonly csiDriver: Readonly<CSIDriver> | undefined
  readonly attachment: Readonly<VolumeAttachment> | undefined
  readonly deps: MountDeps
  readonly signal: AbortSignal
}

/** The pod may have been deleted during the previous step. */
function checkWanted({ publication, volume, deps }: MountOperation): void {
  if (deps.isWanted(publication.uid)) return
  throw waitingFor(`the pod is being deleted: volume "${volume.volume}" is not mounted`)
}

/**
 * Reports the volume in use, which prevents a detach, then reads the attachment from the server again: it may have been
 * deleted just before the report. A server without atomic commits removes the volume from the node's volumesAttached
 * before it deletes the attachment, so that list is checked too.
 */
async function confirmAttached(
  { metadata }: Readonly<VolumeAttachment>,
  { volume, deps, signal }: MountOperation,
): Promise<void> {
  await deps.inUse.add(volume)
  const name = metadata.name ?? ''
  const now = await find(deps.client, volumeAttachmentKind, { name }, { signal })
  const isAttached = now && now.metadata.uid === metadata.uid && isUsable(now)
  if (!isAttached)
    throw waitingFor(`volume "${volume.volume}" is being detached from the node (VolumeAttachment ${name})`)
  if ((await deps.client.commitsAtomically()) || (await isListed(volume, deps, signal))) return
  throw waitingFor(`volume "${volume.volume}" is not among the attached volumes of node ${deps.nodeName}`)
}

async function isListed(volume: CsiVolume, { client, nodeName }: MountDeps, signal: AbortSignal): Promise<boolean> {
  const { status } = await client.get(nodeKind, { name: nodeName }, { signal })
  return status?.volumesAttached?.some(({ name }) => name === attachedVolumeNameOf(volume)) ?? false
}

const isUsable = ({ metadata, status }: Readonly<VolumeAttachment>): boolean =>
  status?.attached === true && metadata.deletionTimestamp === undefined

function notRegistered(volume: CsiVolume, step: string, drivers: Drivers): VolumeProblem {
  if (!drivers.isSettled)
    return waitingFor(`the drivers of this node are still being registered; waiting for ${volume.driver}`)
  const refusal = drivers.refusalOf(volume.driver)
  return failedMount(
    `${step}.SetUp failed for volume "${volume.volume}" : driver name ${volume.driver} not found in the list of ` +
      `registered CSI drivers${refusal === undefined ? '. Start the driver on this node' : `: ${refusal}`}`,
  )
}

function checkServed(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, step: string): void {
  const failed = (because: string) => failedMount(`${step}.SetUp failed for volume "${volume.volume}" : ${because}`)
  if ((csiDriver?.spec.tokenRequests?.length ?? 0) > 0) {
    throw failed(`driver ${volume.driver} asks for service account tokens, which this agent does not provide`)
  }
  if (volume.isInline && !csiDriver?.spec.volumeLifecycleModes?.includes('Ephemeral')) {
    throw failed(`driver ${volume.driver} does not support CSI ephemeral inline volumes. Use a claim`)
  }
}

/** ReadWriteOncePod, by the mount records. */
function checkOnlyUser({ metadata }: Readonly<Pod>, volume: CsiVolume, { records }: MountDeps): void {
  if (!volume.pv?.spec?.accessModes?.includes('ReadWriteOncePod')) return
  const other = records.ofVolume(volume).find(({ uid }) => uid !== metadata.uid)
  if (!other) return
  throw failedMount(
    `MountVolume.SetUp failed for volume "${volume.volume}" : volume uses the ReadWriteOncePod access mode and is ` +
      'already in use by another pod',
  )
}

/** Undefined if the driver requires no attachment. A driver without a CSIDriver object requires one. */
function attachmentOf(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, deps: MountDeps) {
  if (volume.isInline || csiDriver?.spec.attachRequired === false) return undefined
  const { driver, handle } = volume
  const name = attachmentNameOf({ driver, handle, nodeName: deps.nodeName })
  const attachment = deps.attachments.get({ name })
  if (attachment && isUsable(attachment)) return attachment
  const because = attachment?.status?.attachError?.message
  if (because) {
    throw new VolumeProblem(`AttachVolume.Attach failed for volume "${volume.volume}" : ${because}`, {
      reason: 'FailedAttachVolume',
      isWaiting: true,
    })
  }
  throw waitingFor(`volume "${volume.volume}" is not attached to the node yet (VolumeAttachment ${name})`)
}

function publicationOf({ metadata }: Readonly<Pod>, volume: CsiVolume, attachmentId: string, { paths }: MountDeps) {
  const uid = metadata.uid ?? ''
  const { driver, handle, mode, isInline } = volume
  const target =
    mode === 'Block' ? paths.blockTarget(uid, volume.volume) : `${paths.csiVolume(uid, volume.volume)}/mount`
  return { uid, volume: volume.volume, driver, handle, mode, isInline, attachmentId, target } satisfies Publication
}

/** Writes the record before the driver is called. A target that is occupied without a record is not touched. */
async function record({ volume, publication, deps }: MountOperation): Promise<void> {
  const { records, disk, done } = deps
  const { target } = publication
  const isKnown = records.publication(publication.uid, publication.volume) !== undefined
  const failed = (because: string) =>
    failedMount(`MountVolume.SetUp failed for volume "${volume.volume}" : target path ${target} ${because}`)

  const kind = await disk.kindOf(target)
  const isMounted = kind !== undefined && (await disk.isMountPoint(target))
  if (kind === 'directory' && !isMounted && (await disk.list(target)).length > 0) {
    throw failed('is occupied by files that are not a volume. Nothing was removed; check its contents')
  }
  if (!isKnown && (isMounted || (kind !== undefined && kind !== 'directory'))) {
    throw failed(`is occupied by a ${isMounted ? 'mount' : kind} without a mount record. Nothing was removed`)
  }
  if (isKnown) return
  done.neverPublished.add(publicationKey(publication))
  await records.recordPublication(publication)
}

async function stage(operation: MountOperation): Promise<void> {
  const { pod, volume, driver, attachment, deps, signal } = operation
  const { records, done, paths } = deps
  if (volume.isInline || !driver.can.has('STAGE_UNSTAGE_VOLUME')) return
  const key = volumeKey(volume)
  if (done.staged.has(key)) return
  const path = volume.mode === 'Block' ? paths.blockStaging(volume.volume) : paths.staging(volume.driver, volume.handle)
  const staging: Staging = { driver: volume.driver, handle: volume.handle, mode: volume.mode, path }
  const isNew = records.stagingOf(volume) === undefined
  await records.recordStaging(staging)
  try {
    await driver.csi.node.nodeStageVolume(
      {
        volumeId: volume.handle,
        stagingTargetPath: path,
        volumeCapability: capabilityOf(volume, { can: driver.can, group: groupOfPod(pod) }),
        secrets: await secrets(volume.stageSecret, deps, signal),
        volumeContext: { ...volume.attributes },
        publishContext: { ...attachment?.status?.attachmentMetadata },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  } catch (error) {
    // An earlier staging may have left a mount behind: keep its record.
    if (isNew && !isUncertain(error)) await records.eraseStaging(staging)
    const step = volume.mode === 'Block' ? 'MapVolume.SetUpDevice' : 'MountVolume.MountDevice'
    throw problemOf(error, step, volume)
  }
  done.staged.add(key)
}

async function publish(operation: MountOperation): Promise<void> {
  const { pod, volume, publication, driver, csiDriver, attachment, deps, signal } = operation
  const { records, done } = deps
  const key = publicationKey(publication)
  const isFirst = done.neverPublished.delete(key)
  try {
    await driver.csi.node.nodePublishVolume(
      {
        volumeId: volume.handle,
        targetPath: publication.target,
        stagingTargetPath: records.stagingOf(volume)?.path ?? '',
        volumeCapability: capabilityOf(volume, { can: driver.can, group: groupOfPod(pod) }),
        readonly: volume.readOnly,
        secrets: await secrets(volume.publishSecret, deps, signal),
        volumeContext: { ...volume.attributes, ...podInfo(pod, volume, csiDriver) },
        publishContext: { ...attachment?.status?.attachmentMetadata },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  } catch (error) {
    if (isFirst && !isUncertain(error)) done.neverPublished.add(key)
    throw problemOf(error, volume.mode === 'Block' ? 'MapVolume.MapPodDevice' : 'MountVolume.SetUp', volume)
  }
  done.published.add(key)
}

/** podInfoOnMount. The local driver uses it to limit IO by the pod's cgroup. */
function podInfo(
  { metadata, spec }: Readonly<Pod>,
  volume: CsiVolume,
  csiDriver: Readonly<CSIDriver> | undefined,
): Record<string, string> {
  if (!csiDriver?.spec.podInfoOnMount) return {}
  const prefix = 'csi.storage.k8s.io'
  return {
    [`${prefix}/pod.name`]: metadata.name ?? '',
    [`${prefix}/pod.namespace`]: metadata.namespace ?? '',
    [`${prefix}/pod.uid`]: metadata.uid ?? '',
    [`${prefix}/serviceAccount.name`]: spec?.serviceAccountName ?? '',
    [`${prefix}/ephemeral`]: String(volume.isInline),
  }
}

async function applyFsGroup({ pod, volume, publication, driver, csiDriver, deps }: MountOperation): Promise<void> {
  const change = ownershipChange(pod, volume, { can: driver.can, ...(csiDriver ? { csiDriver } : {}) })
  if (!change) return
  try {
    await deps.metrics.during(volume.driver, 'volume_apply_access_control', () =>
      deps.disk.giveToGroup(publication.target, change),
    )
  } catch (error) {
    throw failedMount(
      `MountVolume.SetUp failed for volume "${volume.volume}" : applyFSGroup failed for vol ${volume.handle}: ` +
        (error as Error).message,
    )
  }
}

const secrets = async (ref: SecretRef | undefined, { client }: MountDeps, signal: AbortSignal) =>
  ref ? { ...(await readCredentials(client, ref, signal)) } : {}

function problemOf(error: unknown, step: string, { volume, mode }: CsiVolume): VolumeProblem {
  const because = error instanceof CsiError ? error.rpcText : (error as Error).message
  return new VolumeProblem(`${step} failed for volume "${volume}" : ${because}`, {
    reason: mode === 'Block' ? 'FailedMapVolume' : 'FailedMount',
  })
}
