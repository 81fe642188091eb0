// Brings one CSI volume to one pod, in the kubelet's order: attached, staged once for the node, published for the pod,
// given to the pod's group. Each step is recorded before the driver is asked and may be repeated at any time; after a
// final refusal nothing is owed, after an uncertain one everything is undone later as if it had worked.

import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { KeyedLock } from '../../base/keyed-lock.ts'
import type { Client } from '../../client/index.ts'
import { CsiError, isUncertain } from '../../csi/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { attachedVolumeNameOf, attachmentNameOf } from '../../volumes/attachment-names.ts'
import { readCredentials } from '../../volumes/credentials.ts'
import { isReachableFrom, type NodeFacts } from '../../volumes/node-affinity.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { AgentPaths } from '../paths.ts'
import { failedMount, VolumeProblem, waitingFor } from '../problem.ts'
import type { Drivers, RegisteredDriver } from '../registration/drivers.ts'
import { type Books, type Publication, type Staging, volumeKey } from './books.ts'
import { capabilityOf } from './capability.ts'
import type { CsiVolume, SecretRef } from './csi-volume.ts'
import type { VolumesInUse } from './in-use.ts'
import { groupOfPod, ownershipChange } from './ownership.ts'

export interface MountDeps {
  readonly nodeName: string
  readonly client: Client
  readonly csiDrivers: Cache<CSIDriver>
  readonly attachments: Cache<VolumeAttachment>
  readonly drivers: Drivers
  readonly books: Books
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly inUse: VolumesInUse
  readonly metrics: AgentMetrics
  /** Work on one volume at a time. */
  readonly lock: KeyedLock
  /** What this life of the agent has asked for, and knows how it went. */
  readonly done: StepsDone
  node(): NodeFacts
  /** Whether the pod still wants its volumes; asked between two steps. */
  isWanted(uid: string): boolean
}

/** By volumeKey, and by `uid/volume`. */
export interface StepsDone {
  readonly staged: Set<string>
  readonly published: Set<string>
  /** Refused for good with nothing left behind, in this life: there is nothing to undo. */
  readonly neverPublished: Set<string>
}

export const emptySteps = (): StepsDone => ({ staged: new Set(), published: new Set(), neverPublished: new Set() })

/** As the kubelet has it, for every call. */
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
    const operation = volume.mode === 'Block' ? 'map_volume' : 'volume_mount'
    return deps.metrics.during(volume.driver, operation, async () => {
      const round = { pod, volume, publication, driver, csiDriver, attachment, deps, signal }
      await record(round)
      if (attachment) await holdAttached(attachment, round)
      checkWanted(round)
      await stage(round)
      checkWanted(round)
      await publish(round)
      await giveToGroup(round)
      return publication
    })
  })
}

interface Round {
  readonly pod: Readonly<Pod>
  readonly volume: CsiVolume
  readonly publication: Publication
  readonly driver: RegisteredDriver
  readonly csiDriver: Readonly<CSIDriver> | undefined
  readonly attachment: Readonly<VolumeAttachment> | undefined
  readonly deps: MountDeps
  readonly signal: AbortSignal
}

/** The pod may have gone while something was waited for. */
function checkWanted({ publication, volume, deps }: Round): void {
  if (deps.isWanted(publication.uid)) return
  throw waitingFor(`the pod is going: volume "${volume.volume}" is not mounted`)
}

/**
 * Whoever detaches does so only from a node that does not say it uses the volume. Once this node has said so, the
 * attachment is looked at again, at the server: it stays from here on, or it has gone just before. Where nobody can do
 * two things at once, a volume is first taken off the node's list and its attachment goes a moment later.
 */
async function holdAttached({ metadata }: Readonly<VolumeAttachment>, { volume, deps, signal }: Round): Promise<void> {
  await deps.inUse.add(volume)
  const name = metadata.name ?? ''
  const now = await deps.client.get(volumeAttachmentKind, { name }, { signal }).catch(ifMissing)
  const isThere = now && now.metadata.uid === metadata.uid && isOffered(now)
  if (!isThere) throw waitingFor(`volume "${volume.volume}" is being detached from the node (VolumeAttachment ${name})`)
  if ((await deps.client.commitsAtomically()) || (await isListed(volume, deps, signal))) return
  throw waitingFor(`volume "${volume.volume}" is not among the attached volumes of node ${deps.nodeName}`)
}

async function isListed(volume: CsiVolume, { client, nodeName }: MountDeps, signal: AbortSignal): Promise<boolean> {
  const { status } = await client.get(nodeKind, { name: nodeName }, { signal })
  return status?.volumesAttached?.some(({ name }) => name === attachedVolumeNameOf(volume)) ?? false
}

const isOffered = ({ metadata, status }: Readonly<VolumeAttachment>): boolean =>
  status?.attached === true && metadata.deletionTimestamp === undefined

function ifMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 404) return undefined
  throw error
}

function notRegistered(volume: CsiVolume, step: string, drivers: Drivers): VolumeProblem {
  if (!drivers.isSettled) return waitingFor(`the drivers of this node are being asked for, ${volume.driver} among them`)
  const refusal = drivers.refusalOf(volume.driver)
  return failedMount(
    `${step}.SetUp failed for volume "${volume.volume}" : driver name ${volume.driver} not found in the list of ` +
      `registered CSI drivers${refusal === undefined ? '. Start the driver on this node' : `: ${refusal}`}`,
  )
}

function checkServed(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, step: string): void {
  const failed = (because: string) => failedMount(`${step}.SetUp failed for volume "${volume.volume}" : ${because}`)
  if ((csiDriver?.spec.tokenRequests?.length ?? 0) > 0) {
    throw failed(`driver ${volume.driver} asks for service account tokens, which this agent does not hand out`)
  }
  if (volume.isInline && !csiDriver?.spec.volumeLifecycleModes?.includes('Ephemeral')) {
    throw failed(`driver ${volume.driver} does not serve volumes that are declared in a pod. Use a claim`)
  }
}

/** ReadWriteOncePod: by the records, which come before the mounts. */
function checkOnlyUser({ metadata }: Readonly<Pod>, volume: CsiVolume, { books }: MountDeps): void {
  if (!volume.pv?.spec?.accessModes?.includes('ReadWriteOncePod')) return
  const other = books.ofVolume(volume).find(({ uid }) => uid !== metadata.uid)
  if (!other) return
  throw failedMount(
    `MountVolume.SetUp failed for volume "${volume.volume}" : volume uses the ReadWriteOncePod access mode and is ` +
      'already in use by another pod',
  )
}

/** Undefined where none is needed. Without a CSIDriver object it is: nobody has said otherwise. */
function attachmentOf(volume: CsiVolume, csiDriver: Readonly<CSIDriver> | undefined, deps: MountDeps) {
  if (volume.isInline || csiDriver?.spec.attachRequired === false) return undefined
  const { driver, handle } = volume
  const name = attachmentNameOf({ driver, handle, nodeName: deps.nodeName })
  const attachment = deps.attachments.get({ name })
  if (attachment && isOffered(attachment)) return attachment
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

/** Before anything is asked of the driver: whatever lies at the target without a record of ours belongs to others. */
async function record({ volume, publication, deps }: Round): Promise<void> {
  const { books, disk, done } = deps
  const { target } = publication
  const isKnown = books.publication(publication.uid, publication.volume) !== undefined
  const failed = (because: string) =>
    failedMount(`MountVolume.SetUp failed for volume "${volume.volume}" : target path ${target} ${because}`)

  const kind = await disk.kindOf(target)
  const isMounted = kind !== undefined && (await disk.isMountPoint(target))
  if (kind === 'directory' && !isMounted && (await disk.list(target)).length > 0) {
    throw failed('is occupied by files that are not a volume. Nothing was removed; look at what lies there')
  }
  if (!isKnown && (isMounted || (kind !== undefined && kind !== 'directory'))) {
    throw failed(`is occupied by a ${isMounted ? 'mount' : kind} that is not ours. Nothing was removed`)
  }
  if (isKnown) return
  done.neverPublished.add(publicationKey(publication))
  await books.recordPublication(publication)
}

async function stage(round: Round): Promise<void> {
  const { pod, volume, driver, attachment, deps, signal } = round
  const { books, done, paths } = deps
  if (volume.isInline || !driver.can.has('STAGE_UNSTAGE_VOLUME')) return
  const key = volumeKey(volume)
  if (done.staged.has(key)) return
  const path = volume.mode === 'Block' ? paths.blockStaging(volume.volume) : paths.staging(volume.driver, volume.handle)
  const staging: Staging = { driver: volume.driver, handle: volume.handle, mode: volume.mode, path }
  const isNew = books.stagingOf(volume) === undefined
  await books.recordStaging(staging)
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
    // Of what was there before this call, nobody can say that nothing is left.
    if (isNew && !isUncertain(error)) await books.eraseStaging(staging)
    const step = volume.mode === 'Block' ? 'MapVolume.SetUpDevice' : 'MountVolume.MountDevice'
    throw problemOf(error, step, volume)
  }
  done.staged.add(key)
}

async function publish(round: Round): Promise<void> {
  const { pod, volume, publication, driver, csiDriver, attachment, deps, signal } = round
  const { books, done } = deps
  const key = publicationKey(publication)
  const isFirst = done.neverPublished.delete(key)
  try {
    await driver.csi.node.nodePublishVolume(
      {
        volumeId: volume.handle,
        targetPath: publication.target,
        stagingTargetPath: books.stagingOf(volume)?.path ?? '',
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

/** Who the volume is for, to drivers that ask for it; among them those that limit IO by the pod's cgroup. */
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

async function giveToGroup({ pod, volume, publication, driver, csiDriver, deps }: Round): Promise<void> {
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
