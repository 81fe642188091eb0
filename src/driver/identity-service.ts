// The Identity service. The manifest describes the backend and its limitations on this machine.
import type { ServiceHandlers } from '../csi/driver.ts'
import type { Identity } from '../csi/gen/csi_pb.js'
import {
  PluginCapability_VolumeExpansion_Type as Expansion,
  PluginCapability_Service_Type as Service,
} from '../csi/gen/csi_pb.js'
import type { Backend } from './backends/backend.ts'
import { DRIVER_NAME } from './names.ts'

export const createIdentityService = (version: string, backend: Backend): ServiceHandlers<typeof Identity> => ({
  async getPluginInfo() {
    const limitations = backend.limitations.map((text, index) => [`limitation.${index + 1}`, text] as const)
    return {
      name: DRIVER_NAME,
      vendorVersion: version,
      manifest: { backend: backend.name, ...Object.fromEntries(limitations) },
    }
  },
  async getPluginCapabilities() {
    const services = [Service.CONTROLLER_SERVICE, Service.VOLUME_ACCESSIBILITY_CONSTRAINTS]
    return {
      capabilities: [
        ...services.map((type) => ({ type: { case: 'service' as const, value: { type } } })),
        // xfs can always grow online. If ext4 cannot, NodeExpandVolume fails, and the volume grows when it is next staged.
        { type: { case: 'volumeExpansion' as const, value: { type: Expansion.ONLINE } } },
      ],
    }
  },
  async probe() {
    return { ready: true } // the socket exists only after recovery
  },
})
