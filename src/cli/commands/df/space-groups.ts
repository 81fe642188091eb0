// Adds up entries by class, node, pool or namespace, with the storage that is still available to new volumes.
import type { ResourceQuota } from '../../../api/kinds/resource-quota/resource-quota-schema.ts'
import { bytesOf, sumOf } from '../../space/bytes.ts'
import { freeBytesOf, type Pool } from './pools.ts'
import type { SpaceEntry } from './space-entries.ts'

export type Grouping = 'class' | 'node' | 'pool' | 'namespace'

/** Sums over the known amounts of a group. An amount that is known for no volume is absent. */
export interface SpaceGroup {
  /** Absent for the volumes whose class, node, pool or namespace is not known, or that have none. */
  readonly name?: string
  /** Set for pools. */
  readonly driver?: string
  readonly volumes: number
  /** The number of volumes whose usage is known. */
  readonly measuredVolumes: number
  readonly requestBytes?: number
  readonly capacityBytes?: number
  readonly usedBytes?: number
  readonly freeBytes?: number
  readonly inodes?: number
  readonly inodesUsed?: number
  readonly iops?: number
  readonly throughputBytes?: number
  readonly growthBytesPerDay?: number
  /** The bytes that the driver reports as available to new volumes. Absent if it reports none. */
  readonly availableBytes?: number
  /** The quota of the namespace with the smallest remainder of requests.storage. */
  readonly quota?: { readonly usedBytes: number; readonly hardBytes: number }
}

const SUMMED_FIELDS = [
  'requestBytes',
  'capacityBytes',
  'usedBytes',
  'freeBytes',
  'inodes',
  'inodesUsed',
  'iops',
  'throughputBytes',
  'growthBytesPerDay',
] as const

export interface GroupOptions {
  readonly pools: readonly Pool[]
  readonly quotas: readonly Readonly<ResourceQuota>[]
}

export function groupEntries(
  entries: readonly SpaceEntry[],
  grouping: Grouping,
  { pools, quotas }: GroupOptions,
): readonly SpaceGroup[] {
  const groups = new Map<string, SpaceEntry[]>()
  const add = (key: string, entry?: SpaceEntry) => {
    const group = groups.get(key) ?? []
    if (entry) group.push(entry)
    groups.set(key, group)
  }
  const available = availableBytesBy(grouping, pools)
  for (const key of available.keys()) add(key) // a class, node or pool without volumes has storage too
  for (const entry of entries)
    if (grouping !== 'namespace' || entry.claim !== undefined) add(keyOf(entry, grouping), entry)
  return [...groups].map(([key, group]) => ({
    ...nameOf(key, grouping),
    ...sumEntries(group),
    ...(available.get(key) === undefined ? {} : { availableBytes: available.get(key)! }),
    ...(grouping === 'namespace' ? tightestQuota(key, quotas) : {}),
  }))
}

/** A pool's key is its driver and segment, separated by a space. A driver's name contains no space. */
function keyOf({ class: className, node, driver, pool, namespace }: SpaceEntry, grouping: Grouping): string {
  if (grouping === 'class') return className ?? ''
  if (grouping === 'node') return node ?? ''
  if (grouping === 'namespace') return namespace ?? ''
  return pool === undefined ? `${driver ?? ''} ` : `${driver} ${pool}`
}

function nameOf(key: string, grouping: Grouping): Pick<SpaceGroup, 'name' | 'driver'> {
  if (grouping !== 'pool') return key === '' ? {} : { name: key }
  const separator = key.indexOf(' ')
  const [driver, segment] = [key.slice(0, separator), key.slice(separator + 1)]
  return { ...(segment === '' ? {} : { name: segment }), ...(driver === '' ? {} : { driver }) }
}

function sumEntries(entries: readonly SpaceEntry[]): Omit<SpaceGroup, 'name'> {
  const sums = SUMMED_FIELDS.flatMap((field) => {
    const sum = sumOf(entries.map((entry) => entry[field]))
    return sum === undefined ? [] : [[field, sum]]
  })
  return {
    volumes: entries.filter(({ volume }) => volume !== undefined).length,
    measuredVolumes: entries.filter(({ usedBytes }) => usedBytes !== undefined).length,
    ...Object.fromEntries(sums),
  }
}

/**
 * Returns the bytes that are available to new volumes: for a class in all pools, for a node in the pools of this node
 * alone, for a pool in the pool, and for no namespace.
 */
function availableBytesBy(grouping: Grouping, pools: readonly Pool[]): ReadonlyMap<string, number | undefined> {
  const available = new Map<string, number | undefined>()
  const add = (key: string, bytes: number | undefined) => available.set(key, sumOf([available.get(key), bytes]))
  for (const pool of pools) {
    if (grouping === 'pool') add(`${pool.driver} ${pool.segment}`, freeBytesOf(pool))
    if (grouping === 'class') for (const [name, bytes] of pool.freeBytesByClass) add(name, bytes)
    if (grouping === 'node' && pool.nodes.size === 1) add([...pool.nodes][0]!, freeBytesOf(pool))
  }
  return available
}

function tightestQuota(namespace: string, quotas: GroupOptions['quotas']): Pick<SpaceGroup, 'quota'> {
  const candidates = quotas.flatMap(({ metadata, status }) => {
    const hardBytes = bytesOf(status?.hard?.['requests.storage'])
    const usedBytes = bytesOf(status?.used?.['requests.storage'])
    return metadata.namespace !== namespace || hardBytes === undefined || usedBytes === undefined
      ? []
      : [{ usedBytes, hardBytes }]
  })
  candidates.sort((a, b) => a.hardBytes - a.usedBytes - (b.hardBytes - b.usedBytes))
  return candidates[0] ? { quota: candidates[0] } : {}
}
