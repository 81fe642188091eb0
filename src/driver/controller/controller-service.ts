// The Controller service: maps each call to its function and reports the capabilities.
import type { ServiceHandlers } from '../../csi/driver.ts'
import { CsiError } from '../../csi/errors.ts'
import type { Controller } from '../../csi/gen/csi_pb.js'
import { ControllerServiceCapability_RPC_Type as Rpc } from '../../csi/gen/csi_pb.js'
import type { DriverContext } from '../context.ts'
import { createVolume } from './create-volume.ts'
import { deleteVolume } from './delete-volume.ts'
import { expandVolume } from './expand-volume.ts'
import { modifyVolume } from './modify-volume.ts'
import { getCapacity, getVolume, listVolumes, validateCapabilities } from './read-volumes.ts'
import { createSnapshot, deleteSnapshot, getSnapshot, listSnapshots } from './snapshots.ts'

const CAPABILITIES = [
  Rpc.CREATE_DELETE_VOLUME,
  Rpc.LIST_VOLUMES,
  Rpc.GET_CAPACITY,
  Rpc.CREATE_DELETE_SNAPSHOT,
  Rpc.LIST_SNAPSHOTS,
  Rpc.GET_SNAPSHOT,
  Rpc.CLONE_VOLUME,
  Rpc.EXPAND_VOLUME,
  Rpc.GET_VOLUME,
  Rpc.SINGLE_NODE_MULTI_WRITER,
  Rpc.MODIFY_VOLUME,
]

export const createControllerService = (driver: DriverContext): ServiceHandlers<typeof Controller> => ({
  createVolume: (request) => createVolume(request, driver),
  deleteVolume: (request) => deleteVolume(request, driver),
  controllerExpandVolume: (request) => expandVolume(request, driver),
  controllerModifyVolume: (request) => modifyVolume(request, driver),
  controllerGetVolume: (request) => getVolume(request, driver),
  listVolumes: (request) => listVolumes(request, driver),
  getCapacity: (request) => getCapacity(request, driver),
  validateVolumeCapabilities: (request) => validateCapabilities(request, driver),
  createSnapshot: (request) => createSnapshot(request, driver),
  deleteSnapshot: (request) => deleteSnapshot(request, driver),
  listSnapshots: (request) => listSnapshots(request, driver),
  getSnapshot: (request) => getSnapshot(request, driver),
  async controllerGetCapabilities() {
    return { capabilities: CAPABILITIES.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })) }
  },
  controllerPublishVolume: notSupported,
  controllerUnpublishVolume: notSupported,
})

/** A local volume is attached when it is staged, so its CSIDriver object has attachRequired: false. */
async function notSupported(): Promise<never> {
  throw new CsiError(
    'UNIMPLEMENTED',
    'Local volumes are attached when they are staged. ControllerPublishVolume and ControllerUnpublishVolume are not needed.',
  )
}
