// Builds the requests of checks for volumes of the configured class and size, and performs the steps that many checks share:
// create, attach, stage and publish a volume, undo each of these, and list volumes.
import { join } from 'node:path'
import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  type CapacityRangeSchema,
  type CreateVolumeRequestSchema,
  type ListVolumesResponse_Entry,
  VolumeCapability_AccessMode_Mode as Mode,
  type TopologyRequirementSchema,
  type Volume,
  type VolumeCapabilitySchema,
} from '../../csi/gen/csi_pb.js'
import { attempt, expectOk } from '../calls/outcomes.ts'
import { type CheckContext, NotApplicable, violate } from '../check.ts'

/** The fields of a request, not a message. */
export type CreateRequest = Exclude<MessageInitShape<typeof CreateVolumeRequestSchema>, { readonly $typeName: string }>
export type Capability = MessageInitShape<typeof VolumeCapabilitySchema>
export type Range = MessageInitShape<typeof CapacityRangeSchema>

/** An id that no volume has. */
export const UNKNOWN_ID = 'stowage-verify-unknown-id'
/** More bytes than any storage system has, and still a valid int64. */
export const IMPOSSIBLE_BYTES = 2n ** 62n

/** Returns the capability with the class's file system type and mount options, as the controllers send it. */
export function classCapability({ settings }: CheckContext, mode: Mode = Mode.SINGLE_NODE_WRITER): Capability {
  const { parameters = {}, mountOptions = [] } = settings.storageClass
  const fsType = parameters['csi.storage.k8s.io/fstype'] ?? ''
  return { accessType: { case: 'mount', value: { fsType, mountFlags: [...mountOptions] } }, accessMode: { mode } }
}

export const exactly = (bytes: number | bigint): Range => ({ requiredBytes: BigInt(bytes), limitBytes: BigInt(bytes) })
export const atLeast = (bytes: number | bigint): Range => ({ requiredBytes: BigInt(bytes) })

/** Returns a valid request with a new name. */
export function createRequest(context: CheckContext, changes: CreateRequest = {}): CreateRequest {
  const { settings } = context
  return {
    name: context.uniqueName(),
    capacityRange: atLeast(settings.sizeBytes),
    volumeCapabilities: [classCapability(context)],
    parameters: driverParameters(context),
    secrets: { ...settings.secrets.CreateVolumeSecret },
    ...nodeRequirement(context),
    ...changes,
  }
}

/** Throws NotApplicable unless the driver advertises that it expands published volumes. */
export function requireOnlineExpansion({ profile }: CheckContext): void {
  if (!profile.expansion.has('ONLINE')) throw new NotApplicable('the driver does not advertise ONLINE expansion')
}

/** Returns the class parameters that are for the driver. */
export const driverParameters = ({ settings }: CheckContext): Record<string, string> =>
  Object.fromEntries(
    Object.entries(settings.storageClass.parameters ?? {}).filter(([key]) => !key.startsWith('csi.storage.k8s.io/')),
  )

/** Requires a volume that is accessible from the driver's node, as if the scheduler had selected that node. */
function nodeRequirement({
  profile,
  nodeInfo,
}: CheckContext): { accessibilityRequirements: MessageInitShape<typeof TopologyRequirementSchema> } | undefined {
  const segments = nodeInfo?.accessibleTopology?.segments
  if (!profile.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS') || !segments) return undefined
  return { accessibilityRequirements: { requisite: [{ segments }], preferred: [{ segments }] } }
}

/** Creates a volume. Throws Violation if the call fails. */
export async function createVolume(context: CheckContext, changes: CreateRequest = {}): Promise<Volume> {
  return sendCreateRequest(context, createRequest(context, changes), 'CreateVolume with a valid request')
}

/** Sends the request. Throws Violation if no volume with an id is returned. */
export async function sendCreateRequest(
  { csi }: CheckContext,
  request: CreateRequest,
  situation: string,
): Promise<Volume> {
  const { volume } = expectOk(await attempt(csi.controller.createVolume(request)), situation)
  if (!volume?.volumeId) violate(`${situation}: the response has no volume_id`)
  return volume
}

export async function deleteVolume({ csi, settings }: CheckContext, volumeId: string): Promise<void> {
  const secrets = settings.secrets.DeleteVolumeSecret ?? settings.secrets.CreateVolumeSecret ?? {}
  expectOk(await attempt(csi.controller.deleteVolume({ volumeId, secrets })), 'DeleteVolume of an unused volume')
}

/** Bounds the pages that are read, in case the driver never returns a last page. */
export const PAGES_MAX = 10_000

/** Returns the entries of all pages of ListVolumes. A driver may return pages even without max_entries. */
export async function listEntries({ csi }: CheckContext): Promise<ListVolumesResponse_Entry[]> {
  const listedEntries: ListVolumesResponse_Entry[] = []
  let startingToken = ''
  for (let page = 1; page <= PAGES_MAX; page++) {
    const { entries, nextToken } = expectOk(await attempt(csi.controller.listVolumes({ startingToken })), 'ListVolumes')
    listedEntries.push(...entries)
    if (nextToken === '') return listedEntries
    startingToken = nextToken
  }
  return violate(`the list does not end after ${PAGES_MAX} pages`)
}

/** Returns the entry of the volume in ListVolumes. Returns undefined if there is none, or if the driver cannot list. */
export async function findListedEntry(
  context: CheckContext,
  volumeId: string,
): Promise<ListVolumesResponse_Entry | undefined> {
  if (!context.profile.controller.has('LIST_VOLUMES')) return undefined
  return (await listEntries(context)).find(({ volume }) => volume?.volumeId === volumeId)
}

export const controllerPublishRequest = (context: CheckContext, volume: Volume, nodeId: string) => ({
  volumeId: volume.volumeId,
  nodeId,
  volumeCapability: classCapability(context),
  volumeContext: volume.volumeContext,
  secrets: { ...context.settings.secrets.ControllerPublishVolumeSecret },
})

/** Attaches the volume to the driver's node if the driver supports it. Returns the publish context. */
export async function attach(context: CheckContext, volume: Volume): Promise<Record<string, string>> {
  const { csi, profile, nodeInfo } = context
  if (!profile.controller.has('PUBLISH_UNPUBLISH_VOLUME')) return {}
  const outcome = await attempt(
    csi.controller.controllerPublishVolume(controllerPublishRequest(context, volume, nodeInfo?.nodeId ?? '')),
  )
  return expectOk(outcome, 'ControllerPublishVolume to the node of NodeGetInfo').publishContext
}

export async function detach(context: CheckContext, volumeId: string): Promise<void> {
  const { csi, profile, nodeInfo, settings } = context
  if (!profile.controller.has('PUBLISH_UNPUBLISH_VOLUME')) return
  const { ControllerUnpublishVolumeSecret, ControllerPublishVolumeSecret } = settings.secrets
  const request = {
    volumeId,
    nodeId: nodeInfo?.nodeId ?? '',
    secrets: { ...(ControllerUnpublishVolumeSecret ?? ControllerPublishVolumeSecret) },
  }
  expectOk(await attempt(csi.controller.controllerUnpublishVolume(request)), 'ControllerUnpublishVolume')
}

/** A volume that is attached, staged or published on this node. */
export interface NodeVolume {
  readonly volume: Volume
  readonly capability: Capability
  readonly publishContext: Record<string, string>
  /** Empty if the driver does not stage. */
  readonly stagingPath: string
  readonly targetPath: string
}

/** Creates and attaches a volume, and creates its staging directory and the parent directory of its target. */
export async function prepareNodeVolume(context: CheckContext, changes: CreateRequest = {}): Promise<NodeVolume> {
  const volume = await createVolume(context, changes)
  const capability = changes.volumeCapabilities?.[0] ?? classCapability(context)
  const publishContext = await attach(context, volume)
  const stagingPath = context.profile.node.has('STAGE_UNSTAGE_VOLUME') ? await context.makeDirectory() : ''
  const targetPath = join(await context.makeDirectory(), 'mount')
  return { volume, capability, publishContext, stagingPath, targetPath }
}

export const stageRequest = ({ settings }: CheckContext, nodeVolume: NodeVolume) => ({
  volumeId: nodeVolume.volume.volumeId,
  stagingTargetPath: nodeVolume.stagingPath,
  volumeCapability: nodeVolume.capability,
  publishContext: nodeVolume.publishContext,
  volumeContext: nodeVolume.volume.volumeContext,
  secrets: { ...settings.secrets.NodeStageVolumeSecret },
})

export const nodePublishRequest = ({ settings }: CheckContext, nodeVolume: NodeVolume) => ({
  volumeId: nodeVolume.volume.volumeId,
  stagingTargetPath: nodeVolume.stagingPath,
  targetPath: nodeVolume.targetPath,
  volumeCapability: nodeVolume.capability,
  publishContext: nodeVolume.publishContext,
  volumeContext: nodeVolume.volume.volumeContext,
  secrets: { ...settings.secrets.NodePublishVolumeSecret },
})

export async function stage(context: CheckContext, nodeVolume: NodeVolume): Promise<void> {
  if (nodeVolume.stagingPath === '') return
  expectOk(await attempt(context.csi.node.nodeStageVolume(stageRequest(context, nodeVolume))), 'NodeStageVolume')
}

export async function unstage({ csi }: CheckContext, { volume, stagingPath }: NodeVolume): Promise<void> {
  if (stagingPath === '') return
  const request = { volumeId: volume.volumeId, stagingTargetPath: stagingPath }
  expectOk(await attempt(csi.node.nodeUnstageVolume(request)), 'NodeUnstageVolume')
}

export async function publish(context: CheckContext, nodeVolume: NodeVolume): Promise<void> {
  expectOk(
    await attempt(context.csi.node.nodePublishVolume(nodePublishRequest(context, nodeVolume))),
    'NodePublishVolume',
  )
}

export async function unpublish({ csi }: CheckContext, { volume, targetPath }: NodeVolume): Promise<void> {
  const request = { volumeId: volume.volumeId, targetPath }
  expectOk(await attempt(csi.node.nodeUnpublishVolume(request)), 'NodeUnpublishVolume')
}

/** Creates, attaches, stages and publishes a volume. */
export async function mountVolume(context: CheckContext, changes: CreateRequest = {}): Promise<NodeVolume> {
  const nodeVolume = await prepareNodeVolume(context, changes)
  await stage(context, nodeVolume)
  await publish(context, nodeVolume)
  return nodeVolume
}

/** Unpublishes, unstages and detaches the volume, but does not delete it. */
export async function unmountVolume(context: CheckContext, nodeVolume: NodeVolume): Promise<void> {
  await unpublish(context, nodeVolume)
  await unstage(context, nodeVolume)
  await detach(context, nodeVolume.volume.volumeId)
}
