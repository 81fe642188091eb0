// CreateVolume: writes the record first, then creates the content. A repeated request returns the same volume, also after
// a crash; a different request with the same name fails with ALREADY_EXISTS. A failed attempt is undone.
import type { CreateVolumeRequest, VolumeContentSource } from '../../csi/gen/csi_pb.js'
import type { FilesystemType } from '../../host/host.ts'
import { NoSpaceError } from '../../host/index.ts'
import { parseSupportedCapability, type RequestedCapability } from '../capabilities.ts'
import { chooseBytes, type Range, rangeOf, sizeMismatch } from '../capacity.ts'
import { type DriverContext, isThisNode, requireNoUnrecordedContent, requireUndamaged, stagingOf } from '../context.ts'
import {
  failedPrecondition,
  insufficientSpace,
  invalid,
  missingField,
  nameTaken,
  notAccessible,
  quote,
  sizeText,
  snapshotNotFound,
  volumeNotFound,
} from '../errors.ts'
import { isSnapshotId, isVolumeId, volumeIdOf } from '../ids.ts'
import { type ClassParameters, parseParameters } from '../parameters.ts'
import { type AccessType, type ContentSource, RECORD_FORMAT, type VolumeRecord } from '../pool/records.ts'
import { checkName } from './names.ts'
import { volumeMessage } from './volume-message.ts'

export async function createVolume(request: CreateVolumeRequest, driver: DriverContext) {
  checkName(request.name)
  if (request.volumeCapabilities.length === 0) throw missingField('volume_capabilities')
  const wanted = readRequest(request, driver)
  const id = volumeIdOf(request.name)
  if (wanted.source?.id === id) throw invalid('A volume cannot be its own source.')

  return driver.locks.run({ exclusive: [id], shared: wanted.source ? [wanted.source.id] : [] }, async () => {
    const known = driver.volumes.get(id)
    if (known && (known.state === 'ready' || known.state === 'growing')) {
      const difference = differenceOf(known, wanted)
      if (difference) throw nameTaken('volume', request.name, difference)
      return { volume: volumeMessage(known, driver) }
    }
    if (known) await discardVolume(known, driver) // a failed attempt, or an unfinished deletion
    const volume = plan(request.name, wanted, driver)
    if (!wanted.isPossibleHere) throw notAccessible(topologyText(driver))
    await requireNoUnrecordedContent(driver, id)
    if (wanted.source) await requireUndamagedSource(wanted.source, driver)
    await create(volume, driver)
    return { volume: volumeMessage(driver.volumes.get(id)!, driver) }
  })
}

/** The parsed request, with all checks that do not need the pool. */
interface VolumeRequest {
  readonly capabilities: readonly RequestedCapability[]
  readonly accessTypes: readonly AccessType[]
  readonly parameters: ClassParameters
  /** Only if the class or a capability specifies one. */
  readonly fsType?: FilesystemType
  readonly range: Range
  readonly source?: ContentSource
  readonly isPossibleHere: boolean
}

function readRequest(request: CreateVolumeRequest, driver: DriverContext): VolumeRequest {
  const parameters = parseParameters(request.parameters, request.mutableParameters)
  const capabilities = request.volumeCapabilities.map((each) =>
    parseSupportedCapability(driver.backend, each, parameters.fsType),
  )
  const source = sourceOf(request.volumeContentSource)
  return {
    capabilities,
    accessTypes: [...new Set(capabilities.map((capability) => capability.accessType))].sort(),
    parameters,
    fsType: oneFsType([parameters.fsType, ...capabilities.map((capability) => capability.fsType)]),
    range: rangeOf(request.capacityRange),
    source,
    isPossibleHere: isPossibleHere(request, driver),
  }
}

function oneFsType(named: readonly (FilesystemType | undefined)[]): FilesystemType | undefined {
  const types = [...new Set(named.filter((type) => type !== undefined))]
  if (types.length > 1)
    throw invalid(`The class and the capabilities specify different file systems: ${types.join(' and ')}.`)
  return types[0]
}

/** Parses the content source; an id in another format cannot exist. */
function sourceOf(source: VolumeContentSource | undefined): ContentSource | undefined {
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

/** Whether the requested topologies include this node. */
function isPossibleHere({ accessibilityRequirements: places }: CreateVolumeRequest, driver: DriverContext): boolean {
  const listed = places?.requisite.length ? places.requisite : (places?.preferred ?? [])
  return listed.length === 0 || listed.some(({ segments }) => isThisNode(driver, segments))
}

const topologyText = (driver: DriverContext) =>
  Object.entries(driver.topology)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

/** How the existing volume of this name differs from the request, if it does. */
function differenceOf(volume: VolumeRecord, wanted: VolumeRequest): string | undefined {
  const { parameters, range, source, fsType } = wanted
  const size = sizeMismatch(range, volume.capacityBytes)
  if (size) return size
  if (!wanted.accessTypes.every((type) => volume.accessTypes.includes(type)))
    return 'it was created for another access type'
  if (wanted.accessTypes.includes('mount') && fsType && fsType !== volume.fsType)
    return `it has ${volume.fsType}, not ${fsType}`
  if (parameters.provisioning !== volume.provisioning) return `it is ${volume.provisioning}`
  if (parameters.overcommit !== volume.overcommit) return `its overcommit is ${volume.overcommit}`
  const { iops, throughputBytes } = volume.createdWith
  if (parameters.rates.iops !== iops || parameters.rates.throughputBytes !== throughputBytes) {
    return 'it was created with other values of iops or throughput'
  }
  if (source?.kind !== volume.source?.kind || source?.id !== volume.source?.id)
    return 'it was created from another source'
  return undefined
}

/** The initial record. Checks that the source exists and that the size is possible; space is allocated later. */
function plan(name: string, wanted: VolumeRequest, driver: DriverContext): VolumeRecord {
  const { source, parameters } = wanted
  const origin = source && originOf(source, driver)
  const fsType = wanted.fsType ?? origin?.fsType ?? driver.backend.defaultFsType
  if (origin && !origin.isUnused && wanted.accessTypes.includes('mount') && fsType !== origin.fsType) {
    throw invalid(
      `The source contains ${origin.fsType}, so the new volume cannot have ${fsType}. Use a class with fsType ${origin.fsType}.`,
    )
  }
  const minimumBytes = driver.backend.minimumBytes({ accessTypes: wanted.accessTypes, fsType })
  const what = wanted.accessTypes.includes('mount') ? `A volume with ${fsType}` : 'A block volume'
  const capacityBytes = origin
    ? chooseBytes(atLeast(wanted.range, origin.bytes), {
        minimumBytes: Math.max(minimumBytes, origin.bytes),
        what: `A copy of ${sizeText(origin.bytes)}`,
      })
    : chooseBytes(wanted.range, { minimumBytes, what })
  return {
    format: RECORD_FORMAT,
    id: volumeIdOf(name),
    name,
    state: 'creating',
    capacityBytes,
    provisioning: parameters.provisioning,
    overcommit: parameters.overcommit,
    accessTypes: wanted.accessTypes,
    fsType,
    createdWith: parameters.rates,
    limits: parameters.rates,
    ...(source ? { source, needsNewUuid: true } : {}),
    ...(!origin || origin.isUnused ? { isUnused: true } : {}),
  }
}

/** Without a requested size, a copy has the size of its source. */
const atLeast = (range: Range, bytes: number): Range =>
  range.requiredBytes === 0 ? { ...range, requiredBytes: bytes } : range

function originOf(source: ContentSource, driver: DriverContext) {
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
  const damage = await driver.backend.contents.snapshotDamage(driver.snapshots.get(id)!)
  if (damage) throw failedPrecondition(`Snapshot ${id} cannot be restored. ${damage}`)
}

async function create(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { pool, volumes, log } = driver
  await pool.allocate(volume.id, volume)
  try {
    await volumes.save(volume)
    await createContent(volume, driver)
    const ready: VolumeRecord = { ...volume, state: 'ready' }
    // If a crash of the machine reverts a blank volume to "creating", it is created again at startup.
    await (volume.source ? volumes.save(ready) : volumes.saveWithoutSync(ready))
  } catch (error) {
    await discardVolume(volume, driver).catch((undoing: Error) => {
      log.error(
        { volume: volume.id, because: undoing.message },
        'creating a volume failed and its remains could not be removed; they are removed at the next start',
      )
    })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.available(volume)
      throw insufficientSpace({ wantedBytes: volume.capacityBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
  log.info({ volume: volume.id, name: quote(volume.name), capacityBytes: volume.capacityBytes }, 'volume created')
}

async function createContent(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { contents } = driver.backend
  const { source } = volume
  if (!source) return contents.create(volume)
  return contents.copy(source, volume, source.kind === 'volume' ? await stagingOf(driver, source.id) : undefined)
}

/** Removes content and records. Safe at any point of a creation or a deletion. */
export async function discardVolume(
  volume: VolumeRecord,
  { backend, volumes, mountRecords, pool }: DriverContext,
): Promise<void> {
  await backend.contents.removeVolume(volume.id)
  await mountRecords.remove(volume.id)
  await volumes.remove(volume.id)
  pool.release(volume.id)
}
