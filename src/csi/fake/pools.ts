// Where a volume's bytes come from: which pools a request may use, what is free in them, and what a size costs.
import type { Topology, TopologyRequirement } from '../gen/csi_pb.js'
import { fail, type Model } from './model.ts'
import type { FakePool } from './settings.ts'
import { usedBytesOf } from './state-index.ts'

/** What a class's parameters say about pools. Several classes may draw on one pool, at different prices. */
export interface PoolParameters {
  readonly pool: string | undefined
  readonly copies: number
}

export function poolParametersOf({ settings }: Model, parameters: Readonly<Record<string, string>>): PoolParameters {
  const { pool, copies = '1', ...others } = parameters
  if (pool !== undefined && !settings.pools.some(({ name }) => name === pool)) {
    fail('INVALID_ARGUMENT', `there is no pool "${pool}"`)
  }
  if (!/^[1-9]$/.test(copies)) fail('INVALID_ARGUMENT', `copies must be 1 to 9, not "${copies}"`)
  for (const key of Object.keys(others)) {
    if (settings.parameterKeys && !settings.parameterKeys.includes(key) && !isClaimMetadata(key)) {
      fail('INVALID_ARGUMENT', `parameter "${key}" is not known`)
    }
  }
  return { pool, copies: Number(copies) }
}

/** Callers may be told to add these to any parameters. */
export const isClaimMetadata = (key: string) => /^csi\.storage\.k8s\.io\/(pvc\/name|pvc\/namespace|pv\/name)$/.test(key)

/** The pools a volume may lie in: as preferred first, then in the order of the settings. */
export function candidatePools(model: Model, draw: PoolParameters, where: TopologyRequirement | undefined): FakePool[] {
  const drawn = model.settings.pools.filter(({ name }) => draw.pool === undefined || name === draw.pool)
  const wanted = where ? [...where.preferred, ...where.requisite] : []
  if (wanted.length === 0) return drawn
  return [...new Set(wanted.flatMap((place) => drawn.filter((pool) => isAccessibleFrom(pool.segments, place))))]
}

/** A pool and a place agree if they share a key and every shared key has one value. */
export function isAccessibleFrom(
  segments: Readonly<Record<string, string>> | undefined,
  place: Pick<Topology, 'segments'> | undefined,
): boolean {
  if (!segments || !place) return true
  const shared = Object.entries(segments).filter(([key]) => place.segments[key] !== undefined)
  return shared.length > 0 && shared.every(([key, value]) => place.segments[key] === value)
}

export const freeBytes = (model: Model, pool: FakePool) => pool.capacityBytes - usedBytesOf(model.state, pool.name)

/** What GetCapacity says is free: of now, or of when reports were held. */
export const reportedFreeBytes = (model: Model, pool: FakePool) =>
  pool.capacityBytes -
  (model.state.frozenUsedBytes ? (model.state.frozenUsedBytes[pool.name] ?? 0) : usedBytesOf(model.state, pool.name))

/** Reports stay as they are now, as of a driver that asks its storage rarely. */
export function freezeCapacity(model: Model): void {
  const { pools } = model.settings
  model.state.frozenUsedBytes = Object.fromEntries(pools.map(({ name }) => [name, usedBytesOf(model.state, name)]))
}

export function unfreezeCapacity({ state }: Model): void {
  state.frozenUsedBytes = undefined
}
