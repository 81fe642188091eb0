// Read-only calls: ListVolumes, ControllerGetVolume, ValidateVolumeCapabilities and GetCapacity.
import { CsiError } from '../../csi/errors.ts'
import type {
  ControllerGetVolumeRequest,
  GetCapacityRequest,
  ListVolumesRequest,
  ValidateVolumeCapabilitiesRequest,
} from '../../csi/gen/csi_pb.js'
import { parseSupportedCapability } from '../capabilities.ts'
import { type DriverContext, getVolumeRecord, isThisNode } from '../context.ts'
import { missingField, volumeNotFound } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { parseParameters, selectDriverParameters } from '../parameters.ts'
import type { AccessType, VolumeRecord } from '../pool/records.ts'
import { paginate } from './paginate-list.ts'
import { describeCondition, toVolumeMessage } from './volume-message.ts'

export async function listVolumes(request: ListVolumesRequest, driver: DriverContext) {
  const createdVolumes = driver.volumes.list().filter(({ state }) => state !== 'creating')
  const { items, nextToken } = paginate(createdVolumes, request, isVolumeId)
  return { entries: items.map((volume) => ({ volume: toVolumeMessage(volume, driver) })), nextToken }
}

export async function getVolume({ volumeId }: ControllerGetVolumeRequest, driver: DriverContext) {
  if (volumeId === '') throw missingField('volume_id')
  const volume = isVolumeId(volumeId) ? driver.volumes.get(volumeId) : undefined
  if (!volume || volume.state === 'creating') throw volumeNotFound(volumeId)
  return {
    volume: toVolumeMessage(volume, driver),
    status: {
      publishedNodeIds: driver.mountRecords.get(volume.id)?.staged ? [driver.nodeId] : [],
      volumeCondition: await describeCondition(volume, driver),
    },
  }
}

export async function validateCapabilities(request: ValidateVolumeCapabilitiesRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.volumeCapabilities.length === 0) throw missingField('volume_capabilities')
  const volume = getVolumeRecord(driver, request.volumeId)
  const message = explainUnsupported(request, volume, driver)
  if (message !== undefined) return { message }
  const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request
  return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } }
}

function explainUnsupported(
  { volumeCapabilities, parameters, mutableParameters }: ValidateVolumeCapabilitiesRequest,
  volume: VolumeRecord,
  driver: DriverContext,
): string | undefined {
  try {
    for (const capability of volumeCapabilities) {
      const { accessType, fsType } = parseSupportedCapability(driver.backend, capability, volume.fsType)
      if (!volume.accessTypes.includes(accessType)) return `The volume was not created for access type ${accessType}.`
      if (fsType && fsType !== volume.fsType) return `The volume has ${volume.fsType}, not ${fsType}.`
    }
    parseParameters(parameters, mutableParameters)
    return undefined
  } catch (error) {
    if (error instanceof CsiError) return error.message
    throw error
  }
}

/** Reports zero capacity instead of an error for requests that are not possible on this node. */
export async function getCapacity(request: GetCapacityRequest, driver: DriverContext) {
  if (request.accessibleTopology && !isThisNode(driver, request.accessibleTopology.segments))
    return { availableCapacity: 0n }
  try {
    const parameters = parseParameters(selectDriverParameters(request.parameters), {})
    const capabilities = request.volumeCapabilities.map((capability) =>
      parseSupportedCapability(driver.backend, capability, parameters.fsType),
    )
    const fsType =
      parameters.fsType ?? capabilities.find((capability) => capability.fsType)?.fsType ?? driver.backend.defaultFsType
    const accessTypes: AccessType[] =
      capabilities.length > 0 ? capabilities.map((capability) => capability.accessType) : ['mount']
    const isPossible = accessTypes.every(
      (accessType) => driver.backend.checkSupport({ accessType, fsType, isReadOnly: false }).available,
    )
    if (!isPossible) return { availableCapacity: 0n }
    const minimumBytes = driver.backend.minimumBytes({ accessTypes, fsType })
    const { availableBytes, maximumBytes } = await driver.pool.readAvailable(parameters)
    return {
      availableCapacity: BigInt(availableBytes),
      maximumVolumeSize: BigInt(maximumBytes < minimumBytes ? 0 : maximumBytes),
      minimumVolumeSize: BigInt(minimumBytes),
    }
  } catch (error) {
    if (error instanceof CsiError) return { availableCapacity: 0n }
    throw error
  }
}
