// Computes the storage of each class in each segment: free according to the driver, promised to volumes, and used.
import type { CapacityRow, Segment, VolumeRow } from '../rows/storage.ts'
import { type LabelledNode, matchesSegment, nameOfSegment } from './segments.ts'

export interface HeatCell {
  readonly className: string
  readonly segmentKey: string
  /** Undefined if the driver does not report it. */
  readonly freeBytes: number | undefined
  /** The largest volume that can be created. */
  readonly largestBytes: number | undefined
  readonly promisedBytes: number
  readonly volumes: number
  /** Sum over the measured volumes; undefined if none is measured. */
  readonly usedBytes: number | undefined
  readonly measuredVolumes: number
  /** The claims in the segment, as namespace/name. */
  readonly claims: readonly string[]
  /** The capacity reports, as namespace/name. */
  readonly reports: readonly string[]
}

export interface HeatRow {
  readonly key: string
  readonly name: string
  readonly nodes: readonly string[]
  /** By class. A class with neither a report nor volumes in the segment has no cell. */
  readonly cells: ReadonlyMap<string, HeatCell>
}

export interface HeatMap {
  readonly classes: readonly string[]
  readonly rows: readonly HeatRow[]
}

interface HeatSources {
  readonly capacities: Iterable<CapacityRow>
  readonly volumes: Iterable<VolumeRow>
  readonly nodes: readonly LabelledNode[]
  /** Used bytes of a claim's volume, by namespace/name. */
  usedBytesOf(claim: string): number | undefined
}

type Draft<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] }

export function buildHeatMap({ capacities, volumes, nodes, usedBytesOf }: HeatSources): HeatMap {
  const segments = new Map<string, { segment: Segment; nodes: Set<string>; cells: Map<string, Draft<HeatCell>> }>()
  const segmentOf = (segment: Segment) => {
    const key = keyOfSegment(segment)
    let entry = segments.get(key)
    if (!entry) {
      const members = nodes.filter(({ labels }) => matchesSegment(segment, labels)).map(({ name }) => name)
      entry = { segment, nodes: new Set(members), cells: new Map() }
      segments.set(key, entry)
    }
    return { key, ...entry }
  }
  const cellOf = (segment: Segment, className: string): Draft<HeatCell> => {
    const { key, cells } = segmentOf(segment)
    let cell = cells.get(className)
    if (!cell) {
      cell = {
        ...{ className, segmentKey: key, freeBytes: undefined, largestBytes: undefined, promisedBytes: 0, volumes: 0 },
        ...{ usedBytes: undefined, measuredVolumes: 0, claims: [], reports: [] },
      }
      cells.set(className, cell)
    }
    return cell
  }
  for (const { className, segment, freeBytes, largestBytes, namespace, name } of capacities) {
    if (segment === undefined) continue // no node can reach the storage
    const cell = cellOf(segment, className)
    cell.reports.push(`${namespace}/${name}`)
    if (freeBytes !== undefined) cell.freeBytes = (cell.freeBytes ?? 0) + freeBytes
    if (largestBytes !== undefined) cell.largestBytes = Math.max(cell.largestBytes ?? 0, largestBytes)
  }
  const reported = [...segments.values()]
  const segmentByVolumeKey = new Map<string, Segment>()
  for (const volume of volumes) {
    const { className = '', capacityBytes = 0, claim } = volume
    const key = volume.segments ? volume.segments.map(keyOfSegment).join(' or ') : ''
    let segment = segmentByVolumeKey.get(key)
    if (!segment) {
      segment = findSegment(volume, reported, nodes)
      segmentByVolumeKey.set(key, segment)
    }
    const cell = cellOf(segment, className)
    cell.volumes++
    cell.promisedBytes += capacityBytes
    if (claim === undefined) continue
    cell.claims.push(claim)
    const usedBytes = usedBytesOf(claim)
    if (usedBytes === undefined) continue
    cell.measuredVolumes++
    cell.usedBytes = (cell.usedBytes ?? 0) + usedBytes
  }
  const rows = [...segments].map(([key, { segment, nodes: members, cells }]) => ({
    key,
    name: nameOfSegment(segment, nodes),
    nodes: [...members],
    cells,
  }))
  return {
    classes: [...new Set(rows.flatMap(({ cells }) => [...cells.keys()]))].sort(),
    rows: rows.sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
}

const keyOfSegment = (segment: Segment): string =>
  segment
    .map(({ key, values }) => `${key}=${[...values].sort().join('|')}`)
    .sort()
    .join(',')

/** Returns the reported segment that has a node of the volume, or the segment of the volume itself. */
function findSegment(
  { segments }: VolumeRow,
  reported: readonly { readonly segment: Segment; readonly nodes: ReadonlySet<string> }[],
  nodes: readonly LabelledNode[],
): Segment {
  if (!segments) return []
  const members = nodes.filter(({ labels }) => segments.some((segment) => matchesSegment(segment, labels)))
  const match = reported.find(
    (candidate) => candidate.segment.length > 0 && members.some(({ name }) => candidate.nodes.has(name)),
  )
  return match?.segment ?? segments[0] ?? []
}

/** The share of the storage that is promised. Undefined if the free storage is unknown, or if both amounts are 0. */
export const promisedShare = ({ freeBytes, promisedBytes }: HeatCell): number | undefined =>
  freeBytes === undefined || freeBytes + promisedBytes === 0 ? undefined : promisedBytes / (freeBytes + promisedBytes)
