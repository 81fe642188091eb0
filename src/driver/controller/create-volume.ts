// CreateVolume: the record first, then the file. Asked again for the same name it gives the same volume, whatever
// happened in between; asked for something else under that name it refuses. A failed attempt leaves nothing.
import type { CreateVolumeRequest, VolumeContentSource } from '../../csi/gen/csi_pb.js'
import type { FilesystemType } from '../../host/host.ts'
import { NoSpaceError } from '../../host/index.ts'
import { type Wish, wishOn } from '../capabilities.ts'
import { chooseBytes, misfit, type Range, rangeOf } from '../capacity.ts'
import { type DriverContext, isHere, mustBeWhole, refuseUnrecorded, stagingOf } from '../context.ts'
import {
  invalid,
  missing,
  nameTaken,
  noRoom,
  noSnapshot,
  notNow,
  noVolume,
  otherPlace,
  quote,
  sizeText,
} from '../errors.ts'
import { isSnapshotId, isVolumeId, volumeIdOf } from '../ids.ts'
import { type ClassParameters, parseParameters } from '../parameters.ts'
import { type AccessType, type ContentSource, RECORD_FORMAT, type VolumeRecord } from '../pool/records.ts'
import { checkName } from './names.ts'
import { volumeMessage } from './volume-message.ts'

export async function createVolume(request: CreateVolumeRequest, driver: DriverContext) {
  checkName(request.name)
  if (request.volumeCapabilities.length === 0) throw missing('volume_capabilities')
  const wanted = readRequest(request, driver)
  const id = volumeIdOf(request.name)
  if (wanted.source?.id === id) throw invalid('A volume cannot be made from itself.')

  return driver.locks.run({ exclusive: [id], shared: wanted.source ? [wanted.source.id] : [] }, async () => {
    const known = driver.volumes.get(id)
    if (known && (known.state === 'ready' || known.state === 'growing')) {
      const difference = differenceOf(known, wanted)
      if (difference) throw nameTaken('volume', request.name, difference)
      return { volume: volumeMessage(known, driver) }
    }
    if (known) await undo(known, driver) // an earlier attempt that failed, or a deletion that was not finished
    const volume = plan(request.name, wanted, driver)
    if (!wanted.isPossibleHere) throw otherPlace(placeText(driver))
    await refuseUnrecorded(driver, id)
    if (wanted.source) await sourceMustBeWhole(wanted.source, driver)
    await make(volume, driver)
    return { volume: volumeMessage(driver.volumes.get(id)!, driver) }
  })
}

/** What is asked for, with everything checked that can be checked without looking at the pool. */
interface Wanted {
  readonly wishes: readonly Wish[]
  readonly accessTypes: readonly AccessType[]
  readonly parameters: ClassParameters
  /** Only if the class or a capability names one. */
  readonly fsType?: FilesystemType
  readonly range: Range
  readonly source?: ContentSource
  readonly isPossibleHere: boolean
}

function readRequest(request: CreateVolumeRequest, driver: DriverContext): Wanted {
  const parameters = parseParameters(request.parameters, request.mutableParameters)
  const wishes = request.volumeCapabilities.map((each) => wishOn(driver.backend, each, parameters.fsType))
  const source = sourceOf(request.volumeContentSource)
  return {
    wishes,
    accessTypes: [...new Set(wishes.map((wish) => wish.accessType))].sort(),
    parameters,
    fsType: oneFsType([parameters.fsType, ...wishes.map((wish) => wish.fsType)]),
    range: rangeOf(request.capacityRange),
    ...(source ? { source } : {}),
    isPossibleHere: isPossibleHere(request, driver),
  }
}

function oneFsType(named: readonly (FilesystemType | undefined)[]): FilesystemType | undefined {
  const types = [...new Set(named.filter((type) => type !== undefined))]
  if (types.length > 1)
    throw invalid(`The class and the capabilities name different file systems: ${types.join(' and ')}.`)
  return types[0]
}

/** An id that is not ours is an id of nothing, which is said when it is looked up. */
function sourceOf(source: VolumeContentSource | undefined): ContentSource | undefined {
  if (!source) return undefined
  switch (source.type.case) {
    case 'snapshot': {
      const id = source.type.value.snapshotId
      if (id === '') throw missing('volume_content_source.snapshot.snapshot_id')
      if (!isSnapshotId(id)) throw noSnapshot(id)
      return { kind: 'snapshot', id }
    }
    case 'volume': {
      const id = source.type.value.volumeId
      if (id === '') throw missing('volume_content_source.volume.volume_id')
      if (!isVolumeId(id)) throw noVolume(id)
      return { kind: 'volume', id }
    }
    case undefined:
      throw missing('volume_content_source.type')
  }
}

/** One of the places the volume must be reachable from has to be this node. */
function isPossibleHere({ accessibilityRequirements: places }: CreateVolumeRequest, driver: DriverContext): boolean {
  const listed = places?.requisite.length ? places.requisite : (places?.preferred ?? [])
  return listed.length === 0 || listed.some(({ segments }) => isHere(driver, segments))
}

const placeText = (driver: DriverContext) =>
  Object.entries(driver.topology)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

/** Why the volume that has this name is not what is wanted now. */
function differenceOf(volume: VolumeRecord, wanted: Wanted): string | undefined {
  const { parameters, range, source, fsType } = wanted
  const size = misfit(range, volume.capacityBytes)
  if (size) return size
  if (!wanted.accessTypes.every((type) => volume.accessTypes.includes(type)))
    return 'it was made for another access type'
  if (wanted.accessTypes.includes('mount') && fsType && fsType !== volume.fsType)
    return `it has ${volume.fsType}, not ${fsType}`
  if (parameters.provisioning !== volume.provisioning) return `it is ${volume.provisioning}`
  if (parameters.overcommit !== volume.overcommit) return `its overcommit is ${volume.overcommit}`
  const { iops, throughputBytes } = volume.createdWith
  if (parameters.rates.iops !== iops || parameters.rates.throughputBytes !== throughputBytes) {
    return 'it was made with other values of iops or throughput'
  }
  if (source?.kind !== volume.source?.kind || source?.id !== volume.source?.id) return 'it was made from another source'
  return undefined
}

/** The record to begin with: the source exists, the size is possible. Room is taken later. */
function plan(name: string, wanted: Wanted, driver: DriverContext): VolumeRecord {
  const { source, parameters } = wanted
  const origin = source && originOf(source, driver)
  const fsType = wanted.fsType ?? origin?.fsType ?? driver.backend.defaultFsType
  if (origin && !origin.isUnused && wanted.accessTypes.includes('mount') && fsType !== origin.fsType) {
    throw invalid(
      `The source holds ${origin.fsType}, so the new volume cannot be ${fsType}. Use a class with fsType ${origin.fsType}.`,
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

/** A caller that names no size wants the size of the source. */
const atLeast = (range: Range, bytes: number): Range =>
  range.requiredBytes === 0 ? { ...range, requiredBytes: bytes } : range

function originOf(source: ContentSource, driver: DriverContext) {
  if (source.kind === 'snapshot') {
    const snapshot = driver.snapshots.get(source.id)
    if (snapshot?.state !== 'ready') throw noSnapshot(source.id)
    return { bytes: snapshot.sizeBytes, fsType: snapshot.fsType, isUnused: snapshot.isUnused === true }
  }
  const volume = driver.volumes.get(source.id)
  if (!volume || volume.state === 'creating' || volume.state === 'deleting') throw noVolume(source.id)
  return { bytes: volume.capacityBytes, fsType: volume.fsType, isUnused: volume.isUnused === true }
}

async function sourceMustBeWhole({ kind, id }: ContentSource, driver: DriverContext): Promise<void> {
  if (kind === 'volume') return mustBeWhole(driver, driver.volumes.get(id)!, 'cloned')
  const damage = await driver.backend.contents.snapshotDamage(driver.snapshots.get(id)!)
  if (damage) throw notNow(`Snapshot ${id} cannot be restored. ${damage}`)
}

async function make(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { pool, volumes, log } = driver
  await pool.take(volume.id, volume)
  try {
    await volumes.save(volume)
    await fill(volume, driver)
    const ready: VolumeRecord = { ...volume, state: 'ready' }
    // A blank volume that a crash of the machine makes "creating" again is simply made again.
    await (volume.source ? volumes.save(ready) : volumes.saveLightly(ready))
  } catch (error) {
    await undo(volume, driver).catch((undoing: Error) => {
      log.error(
        { volume: volume.id, because: undoing.message },
        'a volume that could not be made could not be removed; the next start will',
      )
    })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.room(volume)
      throw noRoom({ wantedBytes: volume.capacityBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
  log.info({ volume: volume.id, name: quote(volume.name), capacityBytes: volume.capacityBytes }, 'volume made')
}

async function fill(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  const { contents } = driver.backend
  const { source } = volume
  if (!source) return contents.make(volume)
  return contents.copy(source, volume, source.kind === 'volume' ? await stagingOf(driver, source.id) : undefined)
}

/** Safe at any point of making one, and of deleting one. */
export async function undo(volume: VolumeRecord, { backend, volumes, presences, pool }: DriverContext): Promise<void> {
  await backend.contents.removeVolume(volume.id)
  await presences.remove(volume.id)
  await volumes.remove(volume.id)
  pool.release(volume.id)
}
