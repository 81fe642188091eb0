// Volumes and capacity of the fake driver. As in the CSI specification, a repeated CreateVolume returns the same volume, and
// a different request with the same name fails with ALREADY_EXISTS.
import { createHash } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Controller, CreateVolumeRequest, VolumeSchema } from '../gen/csi_pb.js'
import {
  areMapsEqual,
  fail,
  formatCapability,
  getVolume,
  type Handlers,
  isMountCapability,
  type Model,
  requireControllerCapability,
  requireField,
} from './model.ts'
import { paginate } from './page.ts'
import {
  freeBytes,
  isAccessibleFrom,
  isClaimMetadata,
  parsePoolParameters,
  reportedFreeBytes,
  selectPools,
} from './pools.ts'
import { chooseSize, isWithin, parseRange } from './sizes.ts'
import { type FakeSource, type FakeVolume, isEmpty, isUnused } from './state.ts'
import { addVolume, findVolumeByName, removeVolume, resizeVolume } from './state-index.ts'

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
    requireControllerCapability(model, 'CREATE_DELETE_VOLUME')
    requireField(request.name, 'name')
    requireField(request.volumeCapabilities, 'volume_capabilities')
    const capabilities = request.volumeCapabilities.map(formatCapability).sort()
    const range = parseRange(request.capacityRange)
    const poolParameters = parsePoolParameters(model, request.parameters)
    checkMutableParameters(model, request.mutableParameters, request.parameters)
    const source = readSource(model, request)

    const existingVolume = findVolumeByName(model.state, request.name)
    if (existingVolume) {
      const difference = describeDifference(existingVolume, request, capabilities, source)
      if (difference) fail('ALREADY_EXISTS', `volume "${request.name}" exists with ${difference}`)
      return { volume: toVolumeMessage(existingVolume) }
    }

    const minimumBytes = source ? getSourceBytes(model, source) : 0
    if (range && minimumBytes > range.limitBytes) fail('OUT_OF_RANGE', 'the source is larger than limit_bytes')
    if (range && range.requiredBytes > 0 && range.requiredBytes < minimumBytes) {
      fail('OUT_OF_RANGE', 'the source is larger than required_bytes')
    }
    const defaultBytes = range?.requiredBytes ? 0 : Math.min(model.settings.defaultBytes, range?.limitBytes ?? Infinity)
    const sizeBytes = overrides.sizeBytes ?? chooseSize(model, range, minimumBytes || defaultBytes)
    const pools = selectPools(model, poolParameters, request.accessibilityRequirements)
    if (pools.length === 0) fail('RESOURCE_EXHAUSTED', 'no pool is accessible from the requested topology')
    const pool = pools.find((candidate) => freeBytes(model, candidate) >= sizeBytes * poolParameters.copies)
    if (!pool) {
      const names = pools.map(({ name }) => name).join(', ')
      return fail(
        'RESOURCE_EXHAUSTED',
        `${sizeBytes} bytes (copies: ${poolParameters.copies}) do not fit into pool ${names}`,
      )
    }

    const order = model.state.sequence + 1
    const volume: FakeVolume = {
      id: `vol-${createHash('sha256').update(request.name).digest('hex').slice(0, 16)}-${order}`,
      name: request.name,
      order,
      pool: pool.name,
      copies: poolParameters.copies,
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
    return { volume: toVolumeMessage(volume) }
  },

  deleteVolume(model, { volumeId }) {
    requireControllerCapability(model, 'CREATE_DELETE_VOLUME')
    requireField(volumeId, 'volume_id')
    const volume = model.state.volumes[volumeId]
    if (volume && !isUnused(volume)) fail('FAILED_PRECONDITION', `volume "${volumeId}" is in use`)
    if (volume) removeVolume(model.state, volume)
    return {}
  },

  controllerExpandVolume(model, request, overrides) {
    requireControllerCapability(model, 'EXPAND_VOLUME')
    requireField(request.volumeId, 'volume_id')
    const range = parseRange(request.capacityRange)
    requireField(range, 'capacity_range')
    const volume = getVolume(model, request.volumeId)
    const isBlock = request.volumeCapability?.accessType.case === 'block'
    // A volume that a test added directly has no recorded capabilities, so the request decides.
    const { capabilities } = volume.createRequest
    const hasFileSystem = !isBlock && (capabilities.length === 0 || capabilities.some(isMountCapability))
    const nodeExpansionRequired = model.settings.expandsOnNode && hasFileSystem
    if (volume.capacityBytes > range!.limitBytes) fail('OUT_OF_RANGE', 'the volume is larger than limit_bytes')
    if (volume.capacityBytes < range!.requiredBytes) {
      if (!model.settings.expansion.includes('ONLINE') && !isUnused(volume)) {
        fail('FAILED_PRECONDITION', `volume "${volume.id}" is in use and can only be expanded offline`)
      }
      const chosenBytes = overrides.sizeBytes ?? chooseSize(model, range, volume.capacityBytes)
      const sizeBytes = Math.max(chosenBytes, volume.capacityBytes)
      const pool = model.settings.pools.find(({ name }) => name === volume.pool)
      const additionalBytes = (sizeBytes - volume.capacityBytes) * volume.copies
      if (pool && freeBytes(model, pool) < additionalBytes) {
        fail('RESOURCE_EXHAUSTED', `${additionalBytes} more bytes do not fit into pool ${pool.name}`)
      }
      resizeVolume(model.state, volume, sizeBytes)
    }
    return { capacityBytes: BigInt(volume.capacityBytes), nodeExpansionRequired }
  },

  controllerModifyVolume(model, request) {
    requireControllerCapability(model, 'MODIFY_VOLUME')
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
    const isBlock = (text: string) => !isMountCapability(text)
    const requestedCapabilities = request.volumeCapabilities.map(formatCapability)
    if (requestedCapabilities.some(isBlock) !== volume.createRequest.capabilities.some(isBlock)) {
      return { message: 'the volume has another access type' }
    }
    const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request
    return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } }
  },

  controllerGetVolume(model, { volumeId }) {
    requireControllerCapability(model, 'GET_VOLUME')
    requireField(volumeId, 'volume_id')
    const volume = getVolume(model, volumeId)
    return { volume: toVolumeMessage(volume), status: statusOf(volume, model) }
  },

  listVolumes(model, request) {
    requireControllerCapability(model, 'LIST_VOLUMES')
    const { items, nextToken } = paginate(Object.values(model.state.volumes), model.state.sequence, request)
    return {
      entries: items.map((volume) => ({ volume: toVolumeMessage(volume), status: statusOf(volume, model) })),
      nextToken,
    }
  },

  getCapacity(model, request) {
    requireControllerCapability(model, 'GET_CAPACITY')
    const freeBytesOfPools = poolsForParameters(model, request.parameters)
      .filter(({ pool }) => isAccessibleFrom(pool.segments, request.accessibleTopology))
      .map(({ pool, copies }) => Math.max(0, Math.floor(reportedFreeBytes(model, pool) / copies)))
    return {
      availableCapacity: BigInt(freeBytesOfPools.reduce((sum, bytes) => sum + bytes, 0)),
      maximumVolumeSize: BigInt(Math.min(Math.max(0, ...freeBytesOfPools), model.settings.maximumBytes)),
    }
  },
}

/** Returns no pools for invalid parameters, because GetCapacity then reports no capacity instead of an error. */
function poolsForParameters(model: Model, parameters: Readonly<Record<string, string>>) {
  try {
    const poolParameters = parsePoolParameters(model, parameters)
    return selectPools(model, poolParameters, undefined).map((pool) => ({ pool, copies: poolParameters.copies }))
  } catch {
    return []
  }
}

/** Checks all parameters before any of them is applied. */
function checkMutableParameters(
  { settings }: Model,
  mutableParameters: Readonly<Record<string, string>>,
  parameters: Readonly<Record<string, string>>,
): void {
  if (!isEmpty(mutableParameters) && !settings.controller.includes('MODIFY_VOLUME')) {
    fail('INVALID_ARGUMENT', 'mutable_parameters are not supported')
  }
  for (const [key, value] of Object.entries(mutableParameters)) {
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

function readSource(model: Model, request: CreateVolumeRequest): FakeSource | undefined {
  const source = request.volumeContentSource?.type
  if (!source?.case) return undefined
  if (source.case === 'snapshot') {
    requireControllerCapability(model, 'CREATE_DELETE_SNAPSHOT')
    requireField(source.value.snapshotId, 'snapshot_id')
    return { kind: 'snapshot', id: source.value.snapshotId }
  }
  requireControllerCapability(model, 'CLONE_VOLUME')
  requireField(source.value.volumeId, 'volume_id')
  return { kind: 'volume', id: source.value.volumeId }
}

function getSourceBytes({ state }: Model, { kind, id }: FakeSource): number {
  const bytes = kind === 'snapshot' ? state.snapshots[id]?.sizeBytes : state.volumes[id]?.capacityBytes
  return bytes ?? fail('NOT_FOUND', `source ${kind} "${id}" does not exist`)
}

/** Describes how the existing volume differs from the requested one. Returns undefined if they are equal. */
function describeDifference(
  volume: FakeVolume,
  request: CreateVolumeRequest,
  capabilities: readonly string[],
  source: FakeSource | undefined,
): string | undefined {
  const topology = request.accessibilityRequirements
  const topologies = topology ? [...topology.requisite, ...topology.preferred] : []
  if (!isWithin(volume.capacityBytes, parseRange(request.capacityRange))) return 'another size'
  if (capabilities.join() !== volume.createRequest.capabilities.join()) return 'other capabilities'
  if (!areMapsEqual(request.parameters, volume.createRequest.parameters)) return 'other parameters'
  if (!areMapsEqual(request.mutableParameters, volume.createRequest.mutableParameters))
    return 'other mutable parameters'
  if (source?.kind !== volume.createRequest.source?.kind || source?.id !== volume.createRequest.source?.id)
    return 'another source'
  if (topologies.length > 0 && !topologies.some((candidate) => isAccessibleFrom(volume.segments, candidate)))
    return 'another topology'
  return undefined
}

function toVolumeMessage(volume: FakeVolume): MessageInitShape<typeof VolumeSchema> {
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

const statusOf = ({ attachments, condition }: FakeVolume, { settings }: Model) => ({
  publishedNodeIds: Object.keys(attachments),
  ...(settings.controller.includes('VOLUME_CONDITION')
    ? { volumeCondition: condition ?? { abnormal: false, message: 'healthy' } }
    : {}),
})
