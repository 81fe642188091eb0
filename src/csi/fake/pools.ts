// The pools of the fake driver: which ones a request may use, and their free capacity.
import type { Topology, TopologyRequirement } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'
import type { FakePool } from './settings.ts'
import { usedBytesOf } from './state-index.ts'

/** The parameters of a StorageClass that concern pools. Classes with different `copies` may share a pool. */
export interface PoolParameters {
  readonly pool: string | undefined
  /** A volume takes this multiple of its size from the pool. */
  readonly copies: number
}

export function poolParametersOf({ settings }: Model, parameters: Readonly<Record<string, string>>): PoolParameters {
  const { pool, copies = '1', ...others } = parameters
  if (pool !== undefined && !settings.pools.some(({ name }) => name === pool)) {
    fail('INVALID_ARGUMENT', `pool "${pool}" does not exist`)
  }
  if (!/^[1-9]$/.test(copies)) fail('INVALID_ARGUMENT', `copies must be 1 to 9, not "${copies}"`)
  for (const key of Object.keys(others)) {
    if (settings.parameterKeys && !settings.parameterKeys.includes(key) && !isClaimMetadata(key)) {
      fail('INVALID_ARGUMENT', `unknown parameter "${key}"`)
    }
  }
  return { pool, copies: Number(copies) }
}

/** Parameters that the caller adds with --extra-create-metadata. */
export const isClaimMetadata = (key: string) => /^csi\.storage\.k8s\.io\/(pvc\/name|pvc\/namespace|pv\/name)$/.test(key)

/** The pools that satisfy the request, in the order of the preferred topologies, then in the order of the settings. */
export function candidatePools(model: Model, draw: PoolParameters, where: TopologyRequirement | undefined): FakePool[] {
  const drawn = model.settings.pools.filter(({ name }) => draw.pool === undefined || name === draw.pool)
  const wanted = where ? [...where.preferred, ...where.requisite] : []
  if (wanted.length === 0) return drawn
  return [...new Set(wanted.flatMap((place) => drawn.filter((pool) => isAccessibleFrom(pool.segments, place))))]
}

/** Whether pool and topology have at least one key in common, and equal values for all common keys. */
export function isAccessibleFrom(
  segments: Readonly<Record<string, string>> | undefined,
  place: Pick<Topology, 'segments'> | undefined,
): boolean {
  if (!segments || !place) return true
  const shared = Object.entries(segments).filter(([key]) => place.segments[key] !== undefined)
  return shared.length > 0 && shared.every(([key, value]) => place.segments[key] === value)
}

export const freeBytes = (model: Model, pool: FakePool) => pool.capacityBytes - usedBytesOf(model.state, pool.name)

/** The free capacity that GetCapacity reports: the current one, or that at the time of freezeCapacity(). */
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
