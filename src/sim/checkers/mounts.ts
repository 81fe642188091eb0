// Rule `double attach`: a single-node volume is never published to a second node. Rule `wrong mount`: a volume is mounted only
// where it is attached, if its driver has attachments, and is not detached while it is mounted; a volume without a shared access
// mode is mounted on one machine only; and a ReadWriteOncePod volume is mounted for one pod only.
import { isOutOfService } from '../../api/kinds/node/fencing.ts'
import { type ControllerPublishVolumeRequest, VolumeCapability_AccessMode_Mode as Mode } from '../../csi/gen/csi_pb.js'
import type { DriverCall, System } from '../engine/system.ts'
import { assetName, assetOf, type ObjectOf } from '../engine/view.ts'
import { type DriverName, nodeIdOf, nodeOfId } from '../plan/catalog.ts'
import { type CheckContext, findDriverVolume } from './context.ts'
import type { IsStaleMount } from './lost-nodes/writers.ts'
import { nodeOfCall } from './overlaps.ts'

const MULTI_NODE_MODES: ReadonlySet<Mode> = new Set([
  Mode.MULTI_NODE_READER_ONLY,
  Mode.MULTI_NODE_SINGLE_WRITER,
  Mode.MULTI_NODE_MULTI_WRITER,
])
const MOUNT_METHODS = ['NodeStageVolume', 'NodePublishVolume']
/** After this time without a Node object, detaching without unmounting is allowed. */
const NODE_LOST_MS = 6 * 60_000

export function checkMounts({ system, view, exemptions, report }: CheckContext, isStale: IsStaleMount): void {
  const { simulation } = system.cluster
  /** `asset node` pairs whose attachment was deleted while the node was lost, when its mounts were unknown. */
  const forceDetachedKeys = new Set<string>()
  /** When each Node object was deleted. */
  const deletedSinceMs = new Map<string, number>()

  view.onCommit((changes) => {
    for (const { of, key, next } of changes) {
      if (of !== 'node') continue
      if (next) deletedSinceMs.delete(key)
      else deletedSinceMs.set(key, simulation.nowMs)
    }
    for (const change of changes) {
      if (change.of !== 'attachment') continue
      const attachment = change.next ?? change.old!
      const { source, nodeName } = attachment.spec
      const asset = assetOf(view.volumes.get(source.persistentVolumeName ?? ''))
      if (!asset) continue
      const attachmentKey = `${asset} ${nodeName}`
      const isDeleted = !change.next || change.next.metadata.deletionTimestamp !== undefined
      if (!isDeleted) forceDetachedKeys.delete(attachmentKey)
      else if (isLost(nodeName)) forceDetachedKeys.add(attachmentKey)
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins') {
      if (call.method === 'ControllerPublishVolume') checkPublish(call)
      if (call.method === 'ControllerUnpublishVolume') checkDetach(call)
      if (MOUNT_METHODS.includes(call.method) && supportsAttachments(system, call.driver)) {
        checkMount(call)
        checkSingleWriter(call)
      }
    } else if (call.method === 'NodePublishVolume' && call.outcome === 'OK') checkSinglePod(call)
  })

  /** Whether the node is tainted as out of service and not ready, or has had no Node object for NODE_LOST_MS. */
  function isLost(nodeName: string): boolean {
    const node = view.nodes.get(nodeName)
    if (node) return isOutOfService(node) && !isReady(node)
    return simulation.nowMs - (deletedSinceMs.get(nodeName) ?? simulation.nowMs) >= NODE_LOST_MS
  }

  function checkPublish({ process, driver, volume, request }: DriverCall): void {
    const { nodeId, volumeCapability } = request as ControllerPublishVolumeRequest
    if (MULTI_NODE_MODES.has(volumeCapability?.accessMode?.mode ?? Mode.UNKNOWN)) return
    const asset = assetName(driver, volume)
    const otherNodes = Object.keys(findDriverVolume(system, asset)?.attachments ?? {}).filter((id) => id !== nodeId)
    if (otherNodes.length === 0) return
    report(
      'double attach',
      `${process} publishes ${asset} to ${nodeOfId(nodeId)}, but it is already published to ${otherNodes.map(nodeOfId)}`,
    )
  }

  function checkDetach(call: DriverCall): void {
    const asset = assetName(call.driver, call.volume)
    const name = nodeOfCall(call)
    const node = system.nodes.get(name)
    if (!node?.isOn || forceDetachedKeys.has(`${asset} ${name}`) || isLost(name)) return
    const mount = node.mounts().find(({ volume }) => volume === asset)
    if (mount) report('wrong mount', `${call.process} detaches ${asset} from ${name}, where ${mount.path} is mounted`)
  }

  function checkMount(call: DriverCall): void {
    const asset = assetName(call.driver, call.volume)
    const name = nodeOfCall(call)
    const driverVolume = findDriverVolume(system, asset)
    if (!driverVolume || exemptions.isLost(asset) || forceDetachedKeys.has(`${asset} ${name}`)) return
    if (!driverVolume.attachments[nodeIdOf(name)]) {
      report('wrong mount', `${call.process} mounts ${asset} on ${name}, where it is not attached`)
    }
  }

  /**
   * Reports a single-node volume that is mounted on a second machine that is on. Both could write to it, a suspended machine
   * after it resumes. A stale mount is exempt (followStaleMounts).
   */
  function checkSingleWriter(call: DriverCall): void {
    const asset = assetName(call.driver, call.volume)
    const modes = view.volumesOf(call.driver, call.volume)[0]?.spec?.accessModes ?? []
    if (modes.length === 0 || modes.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany')) return
    const name = nodeOfCall(call)
    for (const other of system.nodes.values()) {
      if (
        other.name === name ||
        !other.isOn ||
        isStale(asset, other.name) ||
        !other.mounts().some(({ volume }) => volume === asset)
      )
        continue
      report('wrong mount', `${call.process} mounts ${asset} on ${name}, but it is still mounted on ${other.name}`)
    }
  }

  /** Force-deleted pods may still have mounts; force deletion asserts that they do not run. */
  function checkSinglePod({ driver, volume: handle }: DriverCall): void {
    const asset = assetName(driver, handle)
    const claim = view.claimOfUid(view.volumesOf(driver, handle)[0]?.spec?.claimRef?.uid ?? '')
    if (claim?.spec?.accessModes?.join() !== 'ReadWriteOncePod') return
    const nodeByPodUid = new Map<string, string>()
    for (const node of system.nodes.values()) {
      if (!node.isOn) continue
      for (const { path, volume } of node.mounts()) {
        const uid = volume === asset ? parsePodUid(path) : undefined
        if (uid) nodeByPodUid.set(uid, node.name)
      }
    }
    const mountedPods = [...view.pods.values()].filter(({ metadata }) => nodeByPodUid.has(metadata.uid ?? ''))
    // Without attachments nothing can enforce a single pod across nodes.
    const nodeNames = new Set(mountedPods.map(({ metadata }) => nodeByPodUid.get(metadata.uid ?? '')))
    if (mountedPods.length < 2 || (nodeNames.size > 1 && !supportsAttachments(system, driver))) return
    const names = mountedPods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    report('wrong mount', `${asset} is ReadWriteOncePod, but is mounted for ${names.join(' and ')}`)
  }
}

export const supportsAttachments = (system: System, driver: DriverName): boolean =>
  system.drivers.get(driver)?.settings.controller.includes('PUBLISH_UNPUBLISH_VOLUME') ?? false

const isReady = ({ status }: ObjectOf<'node'>): boolean =>
  status?.conditions?.some(({ type, status: conditionStatus }) => type === 'Ready' && conditionStatus === 'True') ??
  false

/** Returns the pod uid in `…/pods/<uid>/volumes/…` and `…/volumeDevices/publish/<volume>/<uid>`. */
export const parsePodUid = (path: string): string | undefined =>
  /\/pods\/([^/]+)\//.exec(path)?.[1] ?? /\/volumeDevices\/publish\/[^/]+\/([^/]+)$/.exec(path)?.[1]
