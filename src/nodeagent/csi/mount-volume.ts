// Mounts a CSI volume for a pod in the same order as the kubelet: wait for the attachment, stage the volume once per node,
// publish it for the pod, apply fsGroup. Each step is idempotent and is recorded before the driver is called. A step that
// failed with an uncertain error is undone like a successful one.

import type { Stored } from '../../api/kind.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { KeyedLock } from '../../base/keyed-lock.ts'
import type { Client } from '../../client/index.ts'
import { CsiError, isUncertain } from '../../csi/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { attachedVolumeNameOf, attachmentNameOf } from '../../volumes/attachment-names.ts'
import { readCredentials } from '../../volumes/credentials.ts'
import { isReachableFrom, type NodeIdentity } from '../../volumes/node-affinity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { AgentPaths } from '../paths.ts'
import type { Drivers, RegisteredDriver } from '../registration/drivers.ts'
import { mountError, VolumeError, waitingError } from '../volume-error.ts'
import { findRelated, type ObjectReader } from '../volume-objects.ts'
import type { CsiVolume, SecretRef } from './csi-volume.ts'
import { groupOfPod, ownershipChange } from './fs-group-policy.ts'
import { type MountRecords, type Publication, type Staging, volumeKey } from './mount-records.ts'
import { capabilityOf } from './volume-capability.ts'
import type { VolumesInUse } from './volumes-in-use.ts'

export interface MountDeps {
  readonly nodeName: string
  readonly clock: Clock
  readonly client: Client
  readonly csiDrivers: Cache<CSIDriver>
  readonly attachments: ObjectReader<VolumeAttachment>
  readonly drivers: Drivers
  readonly records: MountRecords
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly volumesInUse: VolumesInUse
  readonly metrics: AgentMetrics
  /** Serializes the operations on a volume. */
  readonly lock: KeyedLock
  /** The steps that this run of the agent has completed. */
  readonly completedSteps: CompletedSteps
  node(): NodeIdentity
  /** Whether the pod still needs its volumes. This is checked between two steps. */
  needsVolumes(uid: string): boolean
}

export interface CompletedSteps {
  /** By volumeKey. */
  readonly staged: Set<string>
  /** By publicationKey. */
  readonly published: Set<string>
  /** Recorded publications that need no unpublish, because they failed with a final error or were never attempted. */
  readonly neverPublished: Set<string>
}

export const createCompletedSteps = (): CompletedSteps => ({
  staged: new Set(),
  published: new Set(),
  neverPublished: new Set(),
})

/**
 * An attachment that was confirmed longer ago is confirmed again before the volume is published. The machine may have been
 * suspended while the volume was staged, and the volume detached meanwhile. A node must be silent for longer before its volumes
 * are detached.
 */
export const CONFIRMED_MS_MAX = 10_000
/** The timeout that the kubelet uses for CSI calls. */
export const CALL_TIMEOUT_MS = 120_000

export const publicationKey = ({ uid, volumeName }: Pick<Publication, 'uid' | 'volumeName'>) => `${uid}/${volumeName}`

/** Throws VolumeError. */
export async function mountCsiVolume(
  pod: Readonly<Stored<Pod>>,
  volume: CsiVolume,
  deps: MountDeps,
  signal: AbortSignal,
): Promise<Publication> {
  const step = volume.mode === 'Block' ? 'MapVolume' : 'MountVolume'
  const driver = deps.drivers.get(volume.driver)
  const csiDriver = deps.csiDrivers.get({ name: volume.driver })
  if (!driver) throw notRegisteredError(volume, step, deps.drivers)
  if (volume.pv && !isReachableFrom(volume.pv, deps.node())) {
    throw mountError(`${step}.NodeAffinity check failed for volume "${volume.name}" : no matching NodeSelectorTerms`)
  }
  checkSupported(volume, csiDriver, step)

  return deps.lock(volumeKey(volume), async () => {
    checkExclusiveUse(pod, volume, deps)
    const attachment = requireAttachment(volume, csiDriver, deps)
    const publication = publicationOf(pod, volume, attachment?.metadata.name ?? '', deps)
    const metric = volume.mode === 'Block' ? 'map_volume' : 'volume_mount'
    return deps.metrics.measure(volume.driver, metric, async () => {
      const operation = { pod, volume, publication, driver, csiDriver, attachment, deps, signal }
      await recordPublication(operation)
      const confirmedMs = deps.clock.monotonicMs()
      if (attachment) await confirmAttached(attachment, operation)
      checkPodNeedsVolumes(operation)
      await stage(operation)
      const isOutdated = deps.clock.monotonicMs() - confirmedMs >= CONFIRMED_MS_MAX
      if (attachment && isOutdated) await confirmAttached(attachment, operation)
      checkPodNeedsVolumes(operation)
      await publish(operation)
      await applyFsGroup(operation)
      return publication
    })
  })
}

interface MountOperation {
  readonly pod: Readonly<Stored<Pod>>
  readonly volume: CsiVolume
  readonly publication: Publication
  readonly driver: RegisteredDriver
  readonly csiDriver: Readonly<CSIDriver> | undefined
  readonly attachment: Readonly<Stored<VolumeAttachment>> | undefined
  readonly deps: MountDeps
  readonly signal: AbortSignal
}

/** Throws if the pod was deleted during the previous step. */
function checkPodNeedsVolumes({ publication, volume, deps }: MountOperation): void {
  if (deps.needsVolumes(publication.uid)) return
  throw waitingError(`the pod is being deleted: volume "${volume.name}" is not mounted`)
}

/**
 * Reports the volume as in use, which prevents a detach, and then reads the attachment from the server, because it may have
 * been deleted just before the report. With a server without atomic commits, the volume is removed from the node's
 * volumesAttached before the attachment is deleted, so the agent also checks that list.
 */
async function confirmAttached(
  { metadata }: Readonly<Stored<VolumeAttachment>>,
  { volume, deps, signal }: MountOperation,
): Promise<void> {
  await deps.volumesInUse.add(volume)
  const { name } = metadata
  const currentAttachment = await findRelated(deps.client, volumeAttachmentKind, { name }, signal)
  const isConfirmed =
    currentAttachment && currentAttachment.metadata.uid === metadata.uid && isAttached(currentAttachment)
  if (!isConfirmed)
    throw waitingError(
      `volume "${volume.name}" is being detached from the node (VolumeAttachment ${name})`,
      attachmentRef(name),
    )
  if ((await deps.client.commitsAtomically()) || (await isListedAsAttached(volume, deps, signal))) return
  const node = { kind: nodeKind.kind, name: deps.nodeName }
  throw waitingError(`volume "${volume.name}" is not among the attached volumes of node ${deps.nodeName}`, node)
}

const attachmentRef = (name: string) => ({ kind: volumeAttachmentKind.kind, name })

async function isListedAsAttached(
  volume: CsiVolume,
  { client, nodeName }: MountDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const { status } = await client.get(nodeKind, { name: nodeName }, { signal })
  return status?.volumesAttached?.some(({ name }) => name === attachedVolumeNameOf(volume)) ?? false
}

const isAttached = ({ metadata, status }: Readonly<Stored<VolumeAttachment>>): boolean =>
  status?.attached === true && metadata.deletionTimestamp === undefined

function notRegisteredError(volume: CsiVolume, step: string, drivers: Drivers): VolumeError {
  if (!drivers.isSettled)
    return waitingError(`the drivers of this node are still being registered; waiting for ${volume.driver}`)
  const registrationError = drivers.registrationErrorOf(volume.driver)
  return mountError(
    `${step}.SetUp failed for volume "${volume.name}" : driver name ${volume.driver} not found in the list of ` +
      `registered CSI drivers${registrationError === undefined ? '. Start the driver on this node' : `: ${registrationError}`}`,
  )
}

function checkSupported(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, step: string): void {
  const setUpError = (message: string) => mountError(`${step}.SetUp failed for volume "${volume.name}" : ${message}`)
  if ((csiDriver?.spec.tokenRequests?.length ?? 0) > 0) {
    throw setUpError(`driver ${volume.driver} requires service account tokens, which this agent does not support`)
  }
  if (volume.isInline && !csiDriver?.spec.volumeLifecycleModes?.includes('Ephemeral')) {
    throw setUpError(`driver ${volume.driver} does not support CSI ephemeral inline volumes; use a claim`)
  }
}

/** Throws if the volume has the access mode ReadWriteOncePod and the mount records contain another pod. */
function checkExclusiveUse({ metadata }: Readonly<Stored<Pod>>, volume: CsiVolume, { records }: MountDeps): void {
  if (!volume.pv?.spec?.accessModes?.includes('ReadWriteOncePod')) return
  const otherPublication = records.publicationsOfVolume(volume).find(({ uid }) => uid !== metadata.uid)
  if (!otherPublication) return
  throw mountError(
    `MountVolume.SetUp failed for volume "${volume.name}" : volume uses the ReadWriteOncePod access mode and is ` +
      'already in use by another pod',
  )
}

/**
 * Throws until the volume is attached. Returns undefined if no attachment is required. A driver without a CSIDriver requires one.
 */
function requireAttachment(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, deps: MountDeps) {
  if (volume.isInline || csiDriver?.spec.attachRequired === false) return undefined
  const { driver, handle } = volume
  const name = attachmentNameOf({ driver, handle, nodeName: deps.nodeName })
  const attachment = deps.attachments.get({ name })
  if (attachment && isAttached(attachment)) return attachment
  const message = attachment?.status?.attachError?.message
  if (message) {
    throw new VolumeError(`AttachVolume.Attach failed for volume "${volume.name}" : ${message}`, {
      reason: 'FailedAttachVolume',
      isWaiting: true,
      waitsFor: attachmentRef(name),
    })
  }
  throw waitingError(
    `volume "${volume.name}" is not attached to the node yet (VolumeAttachment ${name})`,
    attachmentRef(name),
  )
}

function publicationOf(
  { metadata }: Readonly<Stored<Pod>>,
  volume: CsiVolume,
  attachmentId: string,
  { paths }: MountDeps,
) {
  const uid = metadata.uid
  const { driver, handle, mode, isInline } = volume
  const target = mode === 'Block' ? paths.blockTarget(uid, volume.name) : `${paths.csiVolume(uid, volume.name)}/mount`
  return { uid, volumeName: volume.name, driver, handle, mode, isInline, attachmentId, target } satisfies Publication
}

/** Writes the record. Throws if the target path is occupied. */
async function recordPublication({ volume, publication, deps }: MountOperation): Promise<void> {
  const { records, disk, completedSteps } = deps
  const { target } = publication
  const isRecorded = records.publication(publication.uid, publication.volumeName) !== undefined
  const setUpError = (message: string) =>
    mountError(`MountVolume.SetUp failed for volume "${volume.name}" : target path ${target} ${message}`)

  const kind = await disk.kindOf(target)
  const isMounted = kind !== undefined && (await disk.isMountPoint(target))
  if (kind === 'directory' && !isMounted && (await disk.list(target)).length > 0) {
    throw setUpError('is occupied by files that are not a volume. Nothing was removed; check its contents')
  }
  if (!isRecorded && (isMounted || (kind !== undefined && kind !== 'directory'))) {
    throw setUpError(`is occupied by a ${isMounted ? 'mount' : kind} without a mount record. Nothing was removed`)
  }
  if (isRecorded) return
  completedSteps.neverPublished.add(publicationKey(publication))
  await records.recordPublication(publication)
}

async function stage(operation: MountOperation): Promise<void> {
  const { pod, volume, driver, attachment, deps, signal } = operation
  const { records, completedSteps, paths } = deps
  if (volume.isInline || !driver.capabilities.has('STAGE_UNSTAGE_VOLUME')) return
  const key = volumeKey(volume)
  if (completedSteps.staged.has(key)) return
  const path = volume.mode === 'Block' ? paths.blockStaging(volume.name) : paths.staging(volume.driver, volume.handle)
  const staging: Staging = { driver: volume.driver, handle: volume.handle, mode: volume.mode, path }
  const isNew = records.stagingOf(volume) === undefined
  await records.recordStaging(staging)
  try {
    await driver.csi.node.nodeStageVolume(
      {
        volumeId: volume.handle,
        stagingTargetPath: path,
        volumeCapability: capabilityOf(volume, { capabilities: driver.capabilities, group: groupOfPod(pod) }),
        secrets: await readSecrets(volume.stageSecret, deps, signal),
        volumeContext: { ...volume.attributes },
        publishContext: { ...attachment?.status?.attachmentMetadata },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  } catch (error) {
    // Keep the record of an earlier staging, which may have left a mount behind.
    if (isNew && !isUncertain(error)) await records.removeStaging(staging)
    const step = volume.mode === 'Block' ? 'MapVolume.SetUpDevice' : 'MountVolume.MountDevice'
    throw toVolumeError(error, step, volume)
  }
  completedSteps.staged.add(key)
}

async function publish(operation: MountOperation): Promise<void> {
  const { pod, volume, publication, driver, csiDriver, attachment, deps, signal } = operation
  const { records, completedSteps } = deps
  const key = publicationKey(publication)
  const wasNeverPublished = completedSteps.neverPublished.delete(key)
  try {
    await driver.csi.node.nodePublishVolume(
      {
        volumeId: volume.handle,
        targetPath: publication.target,
        stagingTargetPath: records.stagingOf(volume)?.path ?? '',
        volumeCapability: capabilityOf(volume, { capabilities: driver.capabilities, group: groupOfPod(pod) }),
        readonly: volume.readOnly,
        secrets: await readSecrets(volume.publishSecret, deps, signal),
        volumeContext: { ...volume.attributes, ...podInfoContext(pod, volume, csiDriver) },
        publishContext: { ...attachment?.status?.attachmentMetadata },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  } catch (error) {
    if (wasNeverPublished && !isUncertain(error)) completedSteps.neverPublished.add(key)
    throw toVolumeError(error, volume.mode === 'Block' ? 'MapVolume.MapPodDevice' : 'MountVolume.SetUp', volume)
  }
  completedSteps.published.add(key)
}

/** Returns the volume context of podInfoOnMount. The local driver needs it to limit the IO of the pod's cgroup. */
function podInfoContext(
  { metadata, spec }: Readonly<Stored<Pod>>,
  volume: CsiVolume,
  csiDriver: Readonly<CSIDriver> | undefined,
): Record<string, string> {
  if (!csiDriver?.spec.podInfoOnMount) return {}
  const prefix = 'csi.storage.k8s.io'
  return {
    [`${prefix}/pod.name`]: metadata.name,
    [`${prefix}/pod.namespace`]: metadata.namespace ?? '',
    [`${prefix}/pod.uid`]: metadata.uid,
    [`${prefix}/serviceAccount.name`]: spec?.serviceAccountName ?? '',
    [`${prefix}/ephemeral`]: String(volume.isInline),
  }
}

async function applyFsGroup({ pod, volume, publication, driver, csiDriver, deps }: MountOperation): Promise<void> {
  const change = ownershipChange(pod, volume, {
    capabilities: driver.capabilities,
    ...(csiDriver ? { csiDriver } : {}),
  })
  if (!change) return
  try {
    await deps.metrics.measure(volume.driver, 'volume_apply_access_control', () =>
      deps.disk.applyFsGroup(publication.target, change),
    )
  } catch (error) {
    throw mountError(
      `MountVolume.SetUp failed for volume "${volume.name}" : applyFSGroup failed for vol ${volume.handle}: ` +
        (error as Error).message,
    )
  }
}

const readSecrets = async (ref: SecretRef | undefined, { client }: MountDeps, signal: AbortSignal) =>
  ref ? { ...(await readCredentials(client, ref, signal)) } : {}

function toVolumeError(error: unknown, step: string, { name, mode }: CsiVolume): VolumeError {
  const message = error instanceof CsiError ? error.rpcText : (error as Error).message
  return new VolumeError(`${step} failed for volume "${name}" : ${message}`, {
    reason: mode === 'Block' ? 'FailedMapVolume' : 'FailedMount',
    cause: error,
  })
}
