// A topology segment: the nodes that reach the same storage, described by labels; and the interface to the set of all
// segments. cluster-segments.ts implements it for a cluster; a per-node producer has one segment.

export interface Segment {
  /** Independent of the order of labels: `[["rack","1"],["zone","a"]]`. */
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
}

export interface Segments {
  readonly size: number
  get(id: string): Segment | undefined
  all(): Iterable<Segment>
  /** The segment of a node; undefined if unknown. */
  ofNode(node: string): Segment | undefined
  /** Called when a segment appears or disappears, until the returned function is called. */
  follow(changed: (segment: Segment) => void): () => void
}

export function segmentOf(labels: Readonly<Record<string, string>>): Segment {
  const entries = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return { id: JSON.stringify(entries), labels: Object.fromEntries(entries) }
}

/** Storage of a driver without topology is reachable from every node. */
export const EVERYWHERE: Segment = segmentOf({})

/** The segment of a per-node producer. */
export function oneSegment(segment: Segment, node: string): Segments {
  return {
    size: 1,
    get: (id) => (id === segment.id ? segment : undefined),
    all: () => [segment],
    ofNode: (name) => (name === node ? segment : undefined),
    follow: () => () => {},
  }
}
