// A topology segment is a set of nodes that can access the same storage, described by labels. Segments is the set of all
// segments of a driver: cluster-segments.ts implements it for a cluster, singleSegment for a per-node producer.

export interface Segment {
  /** The sorted labels as JSON, for example `[["rack","1"],["zone","a"]]`. */
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
}

export interface Segments {
  readonly size: number
  get(id: string): Segment | undefined
  all(): Iterable<Segment>
  /** Returns the segment of a node, or undefined if the node is in no segment. */
  segmentOfNode(node: string): Segment | undefined
  /** Calls `onChange` when a segment is added or removed, until the returned function is called. */
  follow(onChange: (segment: Segment) => void): () => void
}

export function segmentOf(labels: Readonly<Record<string, string>>): Segment {
  const entries = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return { id: JSON.stringify(entries), labels: Object.fromEntries(entries) }
}

/** The segment of a driver without topology, which contains all nodes. */
export const ALL_NODES: Segment = segmentOf({})

/** Returns the segments of a per-node producer. */
export function singleSegment(segment: Segment, node: string): Segments {
  return {
    size: 1,
    get: (id) => (id === segment.id ? segment : undefined),
    all: () => [segment],
    segmentOfNode: (name) => (name === node ? segment : undefined),
    follow: () => () => {},
  }
}
