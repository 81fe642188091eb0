// Determines which nodes belong to a storage segment or can reach a volume, and names segments.
import type { CapacityRow, Segment, VolumeRow } from '../rows/storage.ts'

export interface LabelledNode {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

export const matchesSegment = (segment: Segment, labels: Readonly<Record<string, string>>): boolean =>
  segment.every(({ key, values }) => values.includes(labels[key] ?? ''))

/** Returns the nodes that can reach the storage of a capacity report. */
export const nodesOfReport = <N extends LabelledNode>({ segment }: CapacityRow, nodes: readonly N[]): N[] =>
  segment === undefined ? [] : nodes.filter(({ labels }) => matchesSegment(segment, labels))

/** Returns the nodes that can reach the volume, or undefined if all can. */
export const nodesOfVolume = <N extends LabelledNode>({ segments }: VolumeRow, nodes: readonly N[]): N[] | undefined =>
  segments && nodes.filter(({ labels }) => segments.some((segment) => matchesSegment(segment, labels)))

/** A text for a segment: the only node in it, or its labels without the prefix of their keys. */
export function nameOfSegment(segment: Segment | undefined, nodes: readonly LabelledNode[]): string {
  if (segment === undefined) return 'no node'
  if (segment.length === 0) return 'all nodes'
  const members = nodes.filter(({ labels }) => matchesSegment(segment, labels))
  if (members.length === 1) return members[0]!.name
  return segment.map(({ key, values }) => `${key.split('/').at(-1)}=${values.join('|')}`).join(', ')
}
