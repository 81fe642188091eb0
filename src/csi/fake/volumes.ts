// Volumes of the fake driver: create, delete, expand, modify, list. Follows the CSI specification: a repeated request
// returns the same response, and a different request with the same name fails with ALREADY_EXISTS.
import { createHash } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Controller, CreateVolumeRequest, VolumeSchema } from '../gen/csi_pb.js'
import {
  capabilityText,
  fail,
  getVolume,
  type Handlers,
  isMounted,
  type Model,
  requireController,
  requireField,
  sameMap,
} from './model.ts'
import { pageOf } from './page.ts'
import {
  candidatePools,
  freeBytes,
  isAccessibleFrom,
  isClaimMetadata,
  poolParametersOf,
  reportedFreeBytes,
} from './pools.ts'
import { chooseSize, isWithin, rangeOf } from './sizes.ts'
import { type FakeSource, type FakeVolume, isEmpty, isUnused } from './state.ts'
import { addVolume, removeVolume, resizeVolume, volumeByName } from './state-index.ts'

type VolumeHandlers = Pick<
  Handlers<typeof Controller>,
  | 'createVolume'
  | 'deleteVolume'
  | 'controllerExpandVolume'
  | 'controllerModifyVolume'
  | 'validateVolumeCapabilities'
  | 'controllerGetVolume'
  | 'listVolumes'
  | 'getCapacity'
>

export const volumeHandlers: VolumeHandlers = {
  createVolume(model, request, overrides) {
    requireController(model, 'CREATE_DELETE_VOLUME')
    requireField(request.name, 'name')
    requireField(request.volumeCapabilities, 'volume_capabilities')
    const capabilities = request.volumeCapabilities.map(capabilityText).sort()
    const range = rangeOf(request.capacityRange)
    const placement = poolParametersOf(model, request.parameters)
    checkMutableParameters(model, request.mutableParameters, request.parameters)
    const source = sourceOf(model, request)

    const known = volumeByName(model.state, request.name)
    if (known) {
      const because = differenceOf(known, request, capabilities, source)
      if (because) fail('ALREADY_EXISTS', `volume "${request.name}" exists with ${because}`)
      return { volume: reply(known) }
    }

    const atLeastBytes = source ? sourceBytes(model, source) : 0
    if (range && atLeastBytes > range.limitBytes) fail('OUT_OF_RANGE', 'the source is larger than limit_bytes')
    if (range && range.requiredBytes > 0 && range.requiredBytes < atLeastBytes) {
      fail('OUT_OF_RANGE', 'the source is larger than required_bytes')
    }
    const plainBytes = range?.requiredBytes ? 0 : Math.min(model.settings.defaultBytes, range?.limitBytes ?? Infinity)
    const sizeBytes = overrides.sizeBytes ?? chooseSize(model, range, atLeastBytes || plainBytes)
    const pools = candidatePools(model, placement, request.accessibilityRequirements)
    if (pools.length === 0) fail('RESOURCE_EXHAUSTED', 'no pool is accessible from the requested topology')
    const pool = pools.find((candidate) => freeBytes(model, candidate) >= sizeBytes * placement.copies)
    if (!pool) {
      const names = pools.map(({ name }) => name).join(', ')
      return fail(
        'RESOURCE_EXHAUSTED',
        `${sizeBytes} bytes in ${placement.copies} copies do not fit into pool ${names}`,
      )
    }

    const order = model.state.sequence + 1
    const volume: FakeVolume = {
      id: `vol-${createHash('sha256').update(request.name).digest('hex').slice(0, 16)}-${order}`,
      name: request.name,
      order,
      pool: pool.name,
      copies: placement.copies,
      segments: pool.segments,
      capacityBytes: sizeBytes,
      createRequest: {
        capabilities,
        parameters: { ...request.parameters },
        mutableParameters: { ...request.mutableParameters },
        source,
      },
      mutableParameters: { ...request.mutableParameters },
      attachments: {},
      onNodes: {},
    }
    addVolume(model.state, volume)
    return { volume: reply(volume) }
  },

  deleteVolume(model, { volumeId }) {
    requireController(model, 'CREATE_DELETE_VOLUME')
    requireField(volumeId, 'volume_id')
    const volume = model.state.volumes[volumeId]
    if (volume && !isUnused(volume)) fail('FAILED_PRECONDITION', `volume "${volumeId}" is in use`)
    if (volume) removeVolume(model.state, volume)
    return {}
  },

  controllerExpandVolume(model, request, overrides) {
    requireController(model, 'EXPAND_VOLUME')
    requireField(request.volumeId, 'volume_id')
    const range = rangeOf(request.capacityRange)
    requireField(range, 'capacity_range')
    const volume = getVolume(model, request.volumeId)
    const isBlock = request.volumeCapability?.accessType.case === 'block'
    // A volume that a test added directly has no recorded capabilities: rely on the request.
    const { capabilities } = volume.createRequest
    const hasFileSystem = !isBlock && (capabilities.length === 0 || capabilities.some(isMounted))
    const nodeExpansionRequired = model.settings.expandsOnNode && hasFileSystem
    if (volume.capacityBytes > range!.limitBytes) fail('OUT_OF_RANGE', 'the volume is larger than limit_bytes')
    if (volume.capacityBytes < range!.requiredBytes) {
      if (!model.settings.expansion.includes('ONLINE') && !isUnused(volume)) {
        fail('FAILED_PRECONDITION', `volume "${volume.id}" is in use and can only be expanded offline`)
      }
      const wantedBytes = overrides.sizeBytes ?? chooseSize(model, range, volume.capacityBytes)
      const sizeBytes = Math.max(wantedBytes, volume.capacityBytes)
      const pool = model.settings.pools.find(({ name }) => name === volume.pool)
      const moreBytes = (sizeBytes - volume.capacityBytes) * volume.copies
      if (pool && freeBytes(model, pool) < moreBytes) {
        fail('RESOURCE_EXHAUSTED', `${moreBytes} more bytes do not fit into pool ${pool.name}`)
      }
      resizeVolume(model.state, volume, sizeBytes)
    }
    return { capacityBytes: BigInt(volume.capacityBytes), nodeExpansionRequired }
  },

  controllerModifyVolume(model, request) {
    requireController(model, 'MODIFY_VOLUME')
    requireField(request.volumeId, 'volume_id')
    const volume = getVolume(model, request.volumeId)
    checkMutableParameters(model, request.mutableParameters, volume.createRequest.parameters)
    volume.mutableParameters = { ...volume.mutableParameters, ...request.mutableParameters }
    return {}
  },

  validateVolumeCapabilities(model, request) {
    requireField(request.volumeId, 'volume_id')
    requireField(request.volumeCapabilities, 'volume_capabilities')
    const volume = getVolume(model, request.volumeId)
    const isBlock = (text: string) => !isMounted(text)
    const asked = request.volumeCapabilities.map(capabilityText)
    if (asked.some(isBlock) !== volume.createRequest.capabilities.some(isBlock)) {
      return { message: 'the volume has another access type' }
    }
    const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request
    return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } }
  },

  controllerGetVolume(model, { volumeId }) {
    requireController(model, 'GET_VOLUME')
    requireField(volumeId, 'volume_id')
    const volume = getVolume(model, volumeId)
    return { volume: reply(volume), status: statusOf(volume) }
  },

  listVolumes(model, request) {
    requireController(model, 'LIST_VOLUMES')
    const { items, nextToken } = pageOf(Object.values(model.state.volumes), model.state.sequence, request)
    return { entries: items.map((volume) => ({ volume: reply(volume), status: statusOf(volume) })), nextToken }
  },

  getCapacity(model, request) {
    requireController(model, 'GET_CAPACITY')
    const free = poolsForParameters(model, request.parameters)
      .filter(({ pool }) => isAccessibleFrom(pool.segments, request.accessibleTopology))
      .map(({ pool, copies }) => Math.max(0, Math.floor(reportedFreeBytes(model, pool) / copies)))
    return {
      availableCapacity: BigInt(free.reduce((sum, bytes) => sum + bytes, 0)),
      maximumVolumeSize: BigInt(Math.min(Math.max(0, ...free), model.settings.maximumBytes)),
    }
  },
}

/** For invalid parameters GetCapacity reports no capacity instead of an error. */
function poolsForParameters(model: Model, parameters: Readonly<Record<string, string>>) {
  try {
    const placement = poolParametersOf(model, parameters)
    return candidatePools(model, placement, undefined).map((pool) => ({ pool, copies: placement.copies }))
  } catch {
    return []
  }
}

/** Checks all parameters before any of them is applied. */
function checkMutableParameters(
  { settings }: Model,
  mutable: Readonly<Record<string, string>>,
  parameters: Readonly<Record<string, string>>,
): void {
  if (!isEmpty(mutable) && !settings.controller.includes('MODIFY_VOLUME')) {
    fail('INVALID_ARGUMENT', 'mutable_parameters are not supported')
  }
  for (const [key, value] of Object.entries(mutable)) {
    if (isClaimMetadata(key)) continue
    if (!settings.mutableKeys.includes(key)) fail('INVALID_ARGUMENT', `unknown mutable parameter "${key}"`)
    if ((key === 'iops' || key === 'throughput') && !/^[1-9]\d*$/.test(value)) {
      fail('INVALID_ARGUMENT', `${key} must be a positive integer, not "${value}"`)
    }
    if (parameters[key] !== undefined && parameters[key] !== value) {
      fail('INVALID_ARGUMENT', `"${key}" is "${parameters[key]}" in parameters and "${value}" in mutable_parameters`)
    }
  }
}

function sourceOf(model: Model, request: CreateVolumeRequest): FakeSource | undefined {
  const source = request.volumeContentSource?.type
  if (!source?.case) return undefined
  if (source.case === 'snapshot') {
    requireController(model, 'CREATE_DELETE_SNAPSHOT')
    requireField(source.value.snapshotId, 'snapshot_id')
    return { kind: 'snapshot', id: source.value.snapshotId }
  }
  requireController(model, 'CLONE_VOLUME')
  requireField(source.value.volumeId, 'volume_id')
  return { kind: 'volume', id: source.value.volumeId }
}

function sourceBytes({ state }: Model, { kind, id }: FakeSource): number {
  const bytes = kind === 'snapshot' ? state.snapshots[id]?.sizeBytes : state.volumes[id]?.capacityBytes
  return bytes ?? fail('NOT_FOUND', `source ${kind} "${id}" does not exist`)
}

/** How the existing volume of this name differs from the requested one, if it does. */
function differenceOf(
  volume: FakeVolume,
  request: CreateVolumeRequest,
  capabilities: readonly string[],
  source: FakeSource | undefined,
): string | undefined {
  const where = request.accessibilityRequirements
  const places = where ? [...where.requisite, ...where.preferred] : []
  if (!isWithin(volume.capacityBytes, rangeOf(request.capacityRange))) return 'another size'
  if (capabilities.join() !== volume.createRequest.capabilities.join()) return 'other capabilities'
  if (!sameMap(request.parameters, volume.createRequest.parameters)) return 'other parameters'
  if (!sameMap(request.mutableParameters, volume.createRequest.mutableParameters)) return 'other mutable parameters'
  if (source?.kind !== volume.createRequest.source?.kind || source?.id !== volume.createRequest.source?.id)
    return 'another source'
  if (places.length > 0 && !places.some((place) => isAccessibleFrom(volume.segments, place))) return 'another topology'
  return undefined
}

function reply(volume: FakeVolume): MessageInitShape<typeof VolumeSchema> {
  const { source } = volume.createRequest
  return {
    volumeId: volume.id,
    capacityBytes: BigInt(volume.capacityBytes),
    volumeContext: { pool: volume.pool },
    ...(volume.segments ? { accessibleTopology: [{ segments: { ...volume.segments } }] } : {}),
    ...(source?.kind === 'snapshot'
      ? { contentSource: { type: { case: 'snapshot', value: { snapshotId: source.id } } } }
      : {}),
    ...(source?.kind === 'volume'
      ? { contentSource: { type: { case: 'volume', value: { volumeId: source.id } } } }
      : {}),
  }
}

const statusOf = ({ attachments }: FakeVolume) => ({ publishedNodeIds: Object.keys(attachments) })
