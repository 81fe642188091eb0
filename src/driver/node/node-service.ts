// The Node service: maps each call to its function, and reports the capabilities and the topology of the node.
import type { ServiceHandlers } from '../../csi/driver.ts'
import type { Node } from '../../csi/gen/csi_pb.js'
import { NodeServiceCapability_RPC_Type as Rpc } from '../../csi/gen/csi_pb.js'
import type { DriverContext } from '../context.ts'
import { expandOnNode } from './expand-on-node.ts'
import { getVolumeStats } from './get-volume-stats.ts'
import { publishVolume, unpublishVolume } from './publish-volume.ts'
import { stageVolume, unstageVolume } from './stage-volume.ts'

const CAPABILITIES = [Rpc.STAGE_UNSTAGE_VOLUME, Rpc.GET_VOLUME_STATS, Rpc.EXPAND_VOLUME, Rpc.SINGLE_NODE_MULTI_WRITER]

export const createNodeService = (driver: DriverContext): ServiceHandlers<typeof Node> => ({
  nodeStageVolume: (request) => stageVolume(request, driver),
  nodeUnstageVolume: (request) => unstageVolume(request, driver),
  nodePublishVolume: (request) => publishVolume(request, driver),
  nodeUnpublishVolume: (request) => unpublishVolume(request, driver),
  nodeGetVolumeStats: (request) => getVolumeStats(request, driver),
  nodeExpandVolume: (request) => expandOnNode(request, driver),
  async nodeGetCapabilities() {
    return { capabilities: CAPABILITIES.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })) }
  },
  async nodeGetInfo() {
    return {
      nodeId: driver.nodeId,
      maxVolumesPerNode: BigInt(driver.volumeLimit.max ?? 0), // 0: unlimited
      accessibleTopology: { segments: { ...driver.topology } },
    }
  },
})
