// The Node service of the fake driver on one node. It records staged and published paths, but mounts nothing.
import { type Node, NodeServiceCapability_RPC_Type as NodeType, VolumeUsage_Unit } from '../gen/csi_pb.js'
import {
  fail,
  formatCapability,
  getVolume,
  type Handlers,
  type Model,
  requireField,
  requireNodeCapability,
} from './model.ts'
import { parseRange } from './sizes.ts'
import { type FakeNodeVolume, type FakeUse, type FakeVolume, isEmpty } from './state.ts'

export function nodeHandlers(nodeId: string): Handlers<typeof Node> {
  const ensureNodeVolume = (volume: FakeVolume): FakeNodeVolume => {
    volume.onNodes[nodeId] ??= { staged: {}, published: {}, fileSystemBytes: volume.capacityBytes }
    return volume.onNodes[nodeId]
  }
  const checkAttached = (model: Model, volume: FakeVolume) => {
    if (model.settings.controller.includes('PUBLISH_UNPUBLISH_VOLUME') && !volume.attachments[nodeId]) {
      fail('FAILED_PRECONDITION', `volume "${volume.id}" is not published to node "${nodeId}"`)
    }
  }
  /** Throws unless the volume is staged or published at the path. */
  const getNodeVolumeAt = (volume: FakeVolume, path: string): FakeNodeVolume => {
    const nodeVolume = volume.onNodes[nodeId]
    if (nodeVolume?.staged[path] || nodeVolume?.published[path]) return nodeVolume
    return fail('NOT_FOUND', `volume "${volume.id}" is neither staged nor published at ${path}`)
  }
  const removeIfUnused = (volume: FakeVolume) => {
    const nodeVolume = volume.onNodes[nodeId]
    if (nodeVolume && isEmpty(nodeVolume.staged) && isEmpty(nodeVolume.published)) delete volume.onNodes[nodeId]
  }

  return {
    nodeStageVolume(model, { volumeId, stagingTargetPath, volumeCapability }) {
      requireNodeCapability(model, 'STAGE_UNSTAGE_VOLUME')
      requireField(volumeId, 'volume_id')
      requireField(stagingTargetPath, 'staging_target_path')
      requireField(volumeCapability, 'volume_capability')
      const use: FakeUse = { capability: formatCapability(volumeCapability), isReadonly: false }
      const volume = getVolume(model, volumeId)
      checkAttached(model, volume)
      const { staged } = ensureNodeVolume(volume)
      checkSameUse(staged[stagingTargetPath], use, stagingTargetPath)
      staged[stagingTargetPath] = use
      return {}
    },

    nodeUnstageVolume(model, { volumeId, stagingTargetPath }) {
      requireNodeCapability(model, 'STAGE_UNSTAGE_VOLUME')
      requireField(volumeId, 'volume_id')
      requireField(stagingTargetPath, 'staging_target_path')
      const volume = model.state.volumes[volumeId]
      if (!volume) return {}
      if (!isEmpty(volume.onNodes[nodeId]?.published ?? {})) {
        fail('FAILED_PRECONDITION', `volume "${volumeId}" is still published on this node`)
      }
      delete volume.onNodes[nodeId]?.staged[stagingTargetPath]
      removeIfUnused(volume)
      return {}
    },

    nodePublishVolume(model, { volumeId, targetPath, stagingTargetPath, volumeCapability, readonly: isReadonly }) {
      requireField(volumeId, 'volume_id')
      requireField(targetPath, 'target_path')
      requireField(volumeCapability, 'volume_capability')
      const use: FakeUse = { capability: formatCapability(volumeCapability), isReadonly }
      const volume = getVolume(model, volumeId)
      checkAttached(model, volume)
      const { staged = {}, published = {} } = volume.onNodes[nodeId] ?? {}
      if (model.settings.node.includes('STAGE_UNSTAGE_VOLUME')) {
        if (!stagingTargetPath || !staged[stagingTargetPath]) {
          fail('FAILED_PRECONDITION', `volume "${volumeId}" is not staged at "${stagingTargetPath}"`)
        }
      }
      checkSameUse(published[targetPath], use, targetPath)
      const hasOtherPath = Object.keys(published).some((path) => path !== targetPath)
      if (hasOtherPath && use.capability.endsWith('SINGLE_NODE_SINGLE_WRITER')) {
        fail('FAILED_PRECONDITION', `volume "${volumeId}" already has its single writer`)
      }
      ensureNodeVolume(volume).published[targetPath] = use
      model.targets?.make(targetPath)
      return {}
    },

    nodeUnpublishVolume(model, { volumeId, targetPath }) {
      requireField(volumeId, 'volume_id')
      requireField(targetPath, 'target_path')
      model.targets?.remove(targetPath)
      const volume = model.state.volumes[volumeId]
      if (!volume) return {}
      delete volume.onNodes[nodeId]?.published[targetPath]
      removeIfUnused(volume)
      return {}
    },

    nodeGetVolumeStats(model, { volumeId, volumePath }) {
      requireNodeCapability(model, 'GET_VOLUME_STATS')
      requireField(volumeId, 'volume_id')
      requireField(volumePath, 'volume_path')
      const { fileSystemBytes } = getNodeVolumeAt(getVolume(model, volumeId), volumePath)
      const total = BigInt(fileSystemBytes)
      return { usage: [{ unit: VolumeUsage_Unit.BYTES, total, available: total, used: 0n }] }
    },

    nodeExpandVolume(model, { volumeId, volumePath, capacityRange }, overrides) {
      requireNodeCapability(model, 'EXPAND_VOLUME')
      requireField(volumeId, 'volume_id')
      requireField(volumePath, 'volume_path')
      const volume = getVolume(model, volumeId)
      const nodeVolume = getNodeVolumeAt(volume, volumePath)
      const range = parseRange(capacityRange)
      if (range && range.requiredBytes > volume.capacityBytes) {
        fail('OUT_OF_RANGE', `the device has only ${volume.capacityBytes} bytes`)
      }
      nodeVolume.fileSystemBytes = Math.max(nodeVolume.fileSystemBytes, overrides.sizeBytes ?? volume.capacityBytes)
      return { capacityBytes: BigInt(nodeVolume.fileSystemBytes) }
    },

    nodeGetCapabilities: (model) => ({ capabilities: model.settings.node.map((name) => rpc(NodeType[name])) }),

    nodeGetInfo(model) {
      const node = model.settings.nodes.find(({ id }) => id === nodeId)
      return {
        nodeId,
        maxVolumesPerNode: BigInt(node?.maxVolumes ?? 0),
        ...(node?.segments ? { accessibleTopology: { segments: { ...node.segments } } } : {}),
      }
    },
  }
}

const rpc = (type: NodeType) => ({ type: { case: 'rpc' as const, value: { type } } })

function checkSameUse(existing: FakeUse | undefined, use: FakeUse, path: string): void {
  if (existing && (existing.capability !== use.capability || existing.isReadonly !== use.isReadonly)) {
    fail('ALREADY_EXISTS', `the volume is at ${path} with other options`)
  }
}
