// The calls that only look: which volumes there are, how one is, whether it can do what is wanted, what would fit.

import { CsiError } from '../../csi/errors.ts'
import type {
  ControllerGetVolumeRequest,
  GetCapacityRequest,
  ListVolumesRequest,
  ValidateVolumeCapabilitiesRequest,
} from '../../csi/gen/csi_pb.js'
import { wishOn } from '../capabilities.ts'
import { type DriverContext, isHere, volumeOf } from '../context.ts'
import { missing, noVolume } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { parseParameters, withoutReserved } from '../parameters.ts'
import type { AccessType, VolumeRecord } from '../pool/records.ts'
import { pageOf } from './pages.ts'
import { conditionOf, volumeMessage } from './volume-message.ts'

export async function listVolumes(request: ListVolumesRequest, driver: DriverContext) {
  const made = driver.volumes.list().filter(({ state }) => state !== 'creating')
  const { items, nextToken } = pageOf(made, request, isVolumeId)
  return { entries: items.map((volume) => ({ volume: volumeMessage(volume, driver) })), nextToken }
}

export async function getVolume({ volumeId }: ControllerGetVolumeRequest, driver: DriverContext) {
  if (volumeId === '') throw missing('volume_id')
  const volume = isVolumeId(volumeId) ? driver.volumes.get(volumeId) : undefined
  if (!volume || volume.state === 'creating') throw noVolume(volumeId)
  return {
    volume: volumeMessage(volume, driver),
    status: {
      publishedNodeIds: driver.presences.get(volume.id)?.staged ? [driver.nodeId] : [],
      volumeCondition: await conditionOf(volume, driver),
    },
  }
}

export async function validateCapabilities(request: ValidateVolumeCapabilitiesRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (request.volumeCapabilities.length === 0) throw missing('volume_capabilities')
  const volume = volumeOf(driver, request.volumeId)
  const message = objectionTo(request, volume, driver)
  if (message !== undefined) return { message }
  const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request
  return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } }
}

function objectionTo(
  { volumeCapabilities, parameters, mutableParameters }: ValidateVolumeCapabilitiesRequest,
  volume: VolumeRecord,
  driver: DriverContext,
): string | undefined {
  try {
    for (const capability of volumeCapabilities) {
      const { accessType, fsType } = wishOn(driver.backend, capability, volume.fsType)
      if (!volume.accessTypes.includes(accessType)) return `The volume was not made for access type ${accessType}.`
      if (fsType && fsType !== volume.fsType) return `The volume has ${volume.fsType}, not ${fsType}.`
    }
    parseParameters(parameters, mutableParameters)
    return undefined
  } catch (error) {
    if (error instanceof CsiError) return error.message
    throw error
  }
}

/** What is not possible here has no capacity; that is an answer, not a failure. */
export async function getCapacity(request: GetCapacityRequest, driver: DriverContext) {
  if (request.accessibleTopology && !isHere(driver, request.accessibleTopology.segments))
    return { availableCapacity: 0n }
  try {
    const parameters = parseParameters(withoutReserved(request.parameters), {})
    const wishes = request.volumeCapabilities.map((each) => wishOn(driver.backend, each, parameters.fsType))
    const fsType = parameters.fsType ?? wishes.find((wish) => wish.fsType)?.fsType ?? driver.backend.defaultFsType
    const accessTypes: AccessType[] = wishes.length > 0 ? wishes.map((wish) => wish.accessType) : ['mount']
    const isPossible = accessTypes.every(
      (accessType) => driver.backend.canServe({ accessType, fsType, isReadOnly: false }).yes,
    )
    if (!isPossible) return { availableCapacity: 0n }
    const minimumBytes = driver.backend.minimumBytes({ accessTypes, fsType })
    const { availableBytes, maximumBytes } = await driver.pool.room(parameters)
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
