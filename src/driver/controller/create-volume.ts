// CreateVolume: writes the record first, then creates the content. A repeated request returns the same volume, even after a
// crash. A request with the same name fails with ALREADY_EXISTS if the size, access types, file system, parameters, source or
// node of the volume do not match it. A failed attempt is undone.
import type { CreateVolumeRequest, VolumeContentSource } from '../../csi/gen/csi_pb.js'
import type { FilesystemType } from '../../host/host.ts'
import { NoSpaceError } from '../../host/index.ts'
import { parseSupportedCapability } from '../capabilities.ts'
import { chooseBytes, describeSizeMismatch, parseRange, type SizeRange } from '../capacity.ts'
import {
  type DriverContext,
  findStaging,
  isThisNode,
  requireNoUnrecordedContent,
  requireUndamaged,
} from '../context.ts'
import {
  failedPrecondition,
  formatSize,
  insufficientSpace,
  invalid,
  missingField,
  nameTakenError,
  notAccessible,
  quote,
  snapshotNotFound,
  volumeNotFound,
} from '../errors.ts'
import { isSnapshotId, isVolumeId, volumeIdOf } from '../ids.ts'
import { requireEnforceable } from '../limits/rates.ts'
import { type ClassParameters, parseParameters } from '../parameters.ts'
import { type AccessType, type ContentSource, RECORD_FORMAT, type VolumeRecord } from '../pool/records.ts'
import { checkName } from './names.ts'
import { toVolumeMessage } from './volume-message.ts'

export async function createVolume(request: CreateVolumeRequest, driver: DriverContext) {
  checkName(request.name)
  if (request.volumeCapabilities.length === 0) throw missingField('volume_capabilities')
  const volumeRequest = parseRequest(request, driver)
  const id = volumeIdOf(request.name)
  if (volumeRequest.source?.id === id) throw invalid('A volume cannot be its own source.')

  return driver.locks.run(
    { exclusive: [id], shared: volumeRequest.source ? [volumeRequest.source.id] : [] },
    async () => {
      const existingVolume = driver.volumes.get(id)
      if (existingVolume && (existingVolume.state === 'ready' || existingVolume.state === 'growing')) {
        const difference = describeDifference(existingVolume, volumeRequest, driver)
        if (difference) throw nameTakenError('volume', request.name, difference)
        return { volume: toVolumeMessage(existingVolume, driver) }
      }
      if (existingVolume) await discardVolume(existingVolume, driver) // a failed attempt, or an unfinished deletion
      const volume = planVolume(request.name, volumeRequest, driver)
      if (!volumeRequest.includesThisNode) throw notAccessible(formatTopology(driver))
      await requireNoUnrecordedContent(driver, id)
      if (volumeRequest.source) await requireUndamagedSource(volumeRequest.source, driver)
      await createReadyVolume(volume, driver)
      return { volume: toVolumeMessage(driver.volumes.get(id)!, driver) }
    },
  )
}

/** The parsed and validated request. */
interface VolumeRequest {
  readonly accessTypes: readonly AccessType[]
  readonly parameters: ClassParameters
  /** Undefined if neither the class nor a capability specifies one. */
  readonly fsType?: FilesystemType
  readonly range: SizeRange
  readonly source?: ContentSource
  readonly includesThisNode: boolean
}

function parseRequest(request: CreateVolumeRequest, driver: DriverContext): VolumeRequest {
  const parameters = parseParameters(request.parameters, request.mutableParameters)
  const capabilities = request.volumeCapabilities.map((capability) =>
    parseSupportedCapability(driver.backend, capability, parameters.fsType),
  )
  const source = parseSource(request.volumeContentSource)
  return {
    accessTypes: [...new Set(capabilities.map((capability) => capability.accessType))].sort(),
    parameters,
    fsType: requireSingleFsType([parameters.fsType, ...capabilities.map((capability) => capability.fsType)]),
    range: parseRange(request.capacityRange),
    source,
    includesThisNode: includesThisNode(request, driver),
  }
}

function requireSingleFsType(fsTypes: readonly (FilesystemType | undefined)[]): FilesystemType | undefined {
  const types = [...new Set(fsTypes.filter((type) => type !== undefined))]
  if (types.length > 1)
    throw invalid(`The class and the capabilities specify different file systems: ${types.join(' and ')}.`)
  return types[0]
}

/** Parses the content source. An id in another format is reported as not found. */
function parseSource(source: VolumeContentSource | undefined): ContentSource | undefined {
  if (!source) return undefined
  switch (source.type.case) {
    case 'snapshot': {
      const id = source.type.value.snapshotId
      if (id === '') throw missingField('volume_content_source.snapshot.snapshot_id')
      if (!isSnapshotId(id)) throw snapshotNotFound(id)
      return { kind: 'snapshot', id }
    }
    case 'volume': {
      const id = source.type.value.volumeId
      if (id === '') throw missingField('volume_content_source.volume.volume_id')
      if (!isVolumeId(id)) throw volumeNotFound(id)
      return { kind: 'volume', id }
    }
    case undefined:
      throw missingField('volume_content_source.type')
  }
}

/** Returns whether the requested topologies include this node, or none is requested. */
function includesThisNode(
  { accessibilityRequirements: requirements }: CreateVolumeRequest,
  driver: DriverContext,
): boolean {
  const topologies = requirements?.requisite.length ? requirements.requisite : (requirements?.preferred ?? [])
  return topologies.length === 0 || topologies.some(({ segments }) => isThisNode(driver, segments))
}

const formatTopology = (driver: DriverContext) =>
  Object.entries(driver.topology)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

/** Describes how the existing volume differs from the request. Returns undefined if they match. */
function describeDifference(
  volume: VolumeRecord,
  volumeRequest: VolumeRequest,
  driver: DriverContext,
): string | undefined {
  const { parameters, range, source, fsType } = volumeRequest
  const size = describeSizeMismatch(range, volume.capacityBytes)
  if (size) return size
  if (!volumeRequest.accessTypes.every((type) => volume.accessTypes.includes(type)))
    return 'it was created for another access type'
  if (volumeRequest.accessTypes.includes('mount') && fsType && fsType !== volume.fsType)
    return `it has ${volume.fsType}, not ${fsType}`
  if (parameters.provisioning !== volume.provisioning) return `it is ${volume.provisioning}`
  if (parameters.overcommit !== volume.overcommit) return `its overcommit is ${volume.overcommit}`
  const { iops, throughputBytes } = volume.createdWith
  if (parameters.rates.iops !== iops || parameters.rates.throughputBytes !== throughputBytes) {
    return 'it was created with other values of iops or throughput'
  }
  if (source?.kind !== volume.source?.kind || source?.id !== volume.source?.id)
    return 'it was created from another source'
  if (!volumeRequest.includesThisNode)
    return `it is accessible only from ${formatTopology(driver)}, which the requested topology does not include`
  return undefined
}

/** Returns the initial record. Checks that the source exists and that the size is possible. Does not allocate space. */
function planVolume(name: string, volumeRequest: VolumeRequest, driver: DriverContext): VolumeRecord {
  const { source, parameters } = volumeRequest
  requireEnforceable(parameters.rates, driver.backend)
  const origin = source && getOrigin(source, driver)
  const fsType = volumeRequest.fsType ?? origin?.fsType ?? driver.backend.defaultFsType
  if (origin && !origin.isUnused && volumeRequest.accessTypes.includes('mount') && fsType !== origin.fsType) {
    throw invalid(
      `The source contains ${origin.fsType}, so the new volume cannot have ${fsType}. Use a class with fsType ${origin.fsType}.`,
    )
  }
  const minimumBytes = driver.backend.minimumBytes({ accessTypes: volumeRequest.accessTypes, fsType })
  const subject = volumeRequest.accessTypes.includes('mount') ? `A volume with ${fsType}` : 'A block volume'
  const capacityBytes = origin
    ? chooseBytes(withDefaultSize(volumeRequest.range, origin.bytes), {
        minimumBytes,
        sourceBytes: origin.bytes,
        subject: `A copy of ${formatSize(origin.bytes)}`,
      })
    : chooseBytes(volumeRequest.range, { minimumBytes, subject })
  return {
    format: RECORD_FORMAT,
    id: volumeIdOf(name),
    name,
    state: 'creating',
    capacityBytes,
    provisioning: parameters.provisioning,
    overcommit: parameters.overcommit,
    accessTypes: volumeRequest.accessTypes,
    fsType,
    createdWith: parameters.rates,
    limits: parameters.rates,
    ...(source ? { source, needsNewUuid: true } : {}),
    ...(!origin || origin.isUnused ? { isUnused: true } : {}),
  }
}

/** Requests the size of the source for a copy without a requested size. */
const withDefaultSize = (range: SizeRange, bytes: number): SizeRange =>
  range.requiredBytes === 0 ? { ...range, requiredBytes: bytes } : range

function getOrigin(source: ContentSource, driver: DriverContext) {
  if (source.kind === 'snapshot') {
    const snapshot = driver.snapshots.get(source.id)
    if (snapshot?.state !== 'ready') throw snapshotNotFound(source.id)
    return { bytes: snapshot.sizeBytes, fsType: snapshot.fsType, isUnused: snapshot.isUnused === true }
  }
  const volume = driver.volumes.get(source.id)
  if (!volume || volume.state === 'creating' || volume.state === 'deleting') throw volumeNotFound(source.id)
  return { bytes: volume.capacityBytes, fsType: volume.fsType, isUnused: volume.isUnused === true }
}

async function requireUndamagedSource({ kind, id }: ContentSource, driver: DriverContext): Promise<void> {
  if (kind === 'volume') return requireUndamaged(driver, driver.volumes.get(id)!, 'cloned')
  const damage = await driver.backend.contents.findSnapshotDamage(driver.snapshots.get(id)!)
  if (damage) throw failedPrecondition(`Snapshot ${id} cannot be restored. ${damage}`)
}

async function createReadyVolume(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { pool, volumes, log } = driver
  await pool.allocate(volume.id, volume)
  try {
    await volumes.save(volume)
    await createContent(volume, driver)
    const readyVolume: VolumeRecord = { ...volume, state: 'ready' }
    // A crash of the machine may revert the record of a blank volume to "creating", and it is created again at startup.
    await (volume.source ? volumes.save(readyVolume) : volumes.saveWithoutSync(readyVolume))
  } catch (error) {
    await discardVolume(volume, driver).catch((undoError: Error) => {
      log.error(
        { volume: volume.id, reason: undoError.message },
        'creating a volume failed and its remains could not be removed; a repeated request removes them, and a restart ' +
          'removes a copy and completes a blank volume',
      )
    })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.readAvailable(volume)
      throw insufficientSpace({ requestedBytes: volume.capacityBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
  log.info({ volume: volume.id, name: quote(volume.name), capacityBytes: volume.capacityBytes }, 'volume created')
}

async function createContent(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { contents } = driver.backend
  const { source } = volume
  if (!source) return contents.create(volume)
  return contents.copy(source, volume, source.kind === 'volume' ? await findStaging(driver, source.id) : undefined)
}

/** Removes content and records. Can be called at any point of a creation or deletion. */
export async function discardVolume(
  volume: VolumeRecord,
  { backend, volumes, mountRecords, pool }: DriverContext,
): Promise<void> {
  await backend.contents.removeVolume(volume.id)
  await mountRecords.remove(volume.id)
  await volumes.remove(volume.id)
  pool.release(volume.id)
}
