// A part of the cluster whose nodes reach the same storage, described by labels; and the set of all such parts, as the
// rest of the folder sees it. cluster-segments.ts finds them in a whole cluster; on a single node there is just one.

export interface Segment {
  /** The same for the same labels, in whatever order they were told: `[["rack","1"],["zone","a"]]`. */
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
}

export interface Segments {
  readonly size: number
  get(id: string): Segment | undefined
  all(): Iterable<Segment>
  /** Where a node is; undefined when that is not known. */
  ofNode(node: string): Segment | undefined
  /** Told of a segment when it comes and when it goes. The returned function ends it. */
  follow(changed: (segment: Segment) => void): () => void
}

export function segmentOf(labels: Readonly<Record<string, string>>): Segment {
  const entries = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return { id: JSON.stringify(entries), labels: Object.fromEntries(entries) }
}

/** Reached from every node: storage whose driver names no topology. */
export const EVERYWHERE: Segment = segmentOf({})

/** Where the producer of a single node is. */
export function oneSegment(segment: Segment, node: string): Segments {
  return {
    size: 1,
    get: (id) => (id === segment.id ? segment : undefined),
    all: () => [segment],
    ofNode: (name) => (name === node ? segment : undefined),
    follow: () => () => {},
  }
}
