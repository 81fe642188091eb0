// A CSI driver without storage, behind a socket as any other: it answers the calls with which volumes are provisioned.
import type { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Controller as ControllerService, Identity as IdentityService } from '../../csi/gen/csi_pb.js'
import {
  ControllerServiceCapability_RPC_Type as Capability,
  PluginCapability_Service_Type as Service,
} from '../../csi/gen/csi_pb.js'
import { type ServedDriver, type ServiceHandlers, serveDriver } from '../../csi/index.ts'

export const SYNTHETIC_DRIVER = 'warm-up.stowage.dev'

export const serveSyntheticDriver = (socket: string, clock: Clock): Promise<ServedDriver> =>
  serveDriver({ endpoint: socket, clock, log: silentLog, identity: IDENTITY, controller: CONTROLLER })

const IDENTITY: ServiceHandlers<typeof IdentityService> = {
  async probe() {
    return { ready: true }
  },
  async getPluginInfo() {
    return { name: SYNTHETIC_DRIVER, vendorVersion: '1' }
  },
  async getPluginCapabilities() {
    return { capabilities: [{ type: { case: 'service' as const, value: { type: Service.CONTROLLER_SERVICE } } }] }
  },
}

const CONTROLLER: Partial<ServiceHandlers<typeof ControllerService>> = {
  async controllerGetCapabilities() {
    return { capabilities: [{ type: { case: 'rpc' as const, value: { type: Capability.CREATE_DELETE_VOLUME } } }] }
  },
  async createVolume({ name, capacityRange }) {
    return { volume: { volumeId: name, capacityBytes: capacityRange?.requiredBytes ?? 0n } }
  },
}
