// Selects the pools of the fake driver that a request may use, and computes their free capacity.
import type { Topology, TopologyRequirement } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'
import type { FakePool } from './settings.ts'
import { usedBytesOf } from './state-index.ts'

/** The parameters of a StorageClass for pools. Classes with different `copies` may share a pool. */
export interface PoolParameters {
  readonly pool: string | undefined
  /** A volume uses this multiple of its size in the pool. */
  readonly copies: number
}

export function parsePoolParameters({ settings }: Model, parameters: Readonly<Record<string, string>>): PoolParameters {
  const { pool, copies = '1', ...otherParameters } = parameters
  if (pool !== undefined && !settings.pools.some(({ name }) => name === pool)) {
    fail('INVALID_ARGUMENT', `pool "${pool}" does not exist`)
  }
  if (!/^[1-9]$/.test(copies)) fail('INVALID_ARGUMENT', `copies must be 1 to 9, not "${copies}"`)
  for (const key of Object.keys(otherParameters)) {
    if (settings.parameterKeys && !settings.parameterKeys.includes(key) && !isClaimMetadata(key)) {
      fail('INVALID_ARGUMENT', `unknown parameter "${key}"`)
    }
  }
  return { pool, copies: Number(copies) }
}

/** Parameters that the caller adds with --extra-create-metadata. */
export const isClaimMetadata = (key: string) => /^csi\.storage\.k8s\.io\/(pvc\/name|pvc\/namespace|pv\/name)$/.test(key)

/** Returns the pools that satisfy the request, in the order of the preferred, then of the requisite topologies. */
export function selectPools(
  model: Model,
  parameters: PoolParameters,
  topology: TopologyRequirement | undefined,
): FakePool[] {
  const matchingPools = model.settings.pools.filter(
    ({ name }) => parameters.pool === undefined || name === parameters.pool,
  )
  const topologies = topology ? [...topology.preferred, ...topology.requisite] : []
  if (topologies.length === 0) return matchingPools
  return [
    ...new Set(
      topologies.flatMap((candidate) => matchingPools.filter((pool) => isAccessibleFrom(pool.segments, candidate))),
    ),
  ]
}

/** Returns true without segments or topology. Otherwise, both must have a common key, and equal values for all common keys. */
export function isAccessibleFrom(
  segments: Readonly<Record<string, string>> | undefined,
  topology: Pick<Topology, 'segments'> | undefined,
): boolean {
  if (!segments || !topology) return true
  const commonSegments = Object.entries(segments).filter(([key]) => topology.segments[key] !== undefined)
  return commonSegments.length > 0 && commonSegments.every(([key, value]) => topology.segments[key] === value)
}

export const freeBytes = (model: Model, pool: FakePool) => pool.capacityBytes - usedBytesOf(model.state, pool.name)

/** Returns the free capacity that GetCapacity reports: the current one, or the one at the time of freezeCapacity(). */
export const reportedFreeBytes = (model: Model, pool: FakePool) =>
  pool.capacityBytes -
  (model.state.frozenUsedBytes ? (model.state.frozenUsedBytes[pool.name] ?? 0) : usedBytesOf(model.state, pool.name))

/** Simulates a driver whose capacity reports are out of date. */
export function freezeCapacity(model: Model): void {
  const { pools } = model.settings
  model.state.frozenUsedBytes = Object.fromEntries(pools.map(({ name }) => [name, usedBytesOf(model.state, name)]))
}

export function unfreezeCapacity({ state }: Model): void {
  state.frozenUsedBytes = undefined
}
