// Folds CPU profiles into one tree, in which equal stacks of several processes and samples are one path, and ranks functions by
// their own time. profiles.ts reads the files; flame-page.ts renders the page.

/** The format of V8: a tree of call frames, and samples of them. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly children?: readonly number[]
}

export interface CallFrame {
  readonly functionName: string
  readonly url: string
  /** Zero-based. */
  readonly lineNumber: number
  readonly columnNumber: number
}

export interface Flame {
  readonly name: string
  /** Microseconds in the function itself. */
  self: number
  /** Including the functions it called. */
  total: number
  readonly children: Map<string, Flame>
}

/** Frames that are not CPU time. */
const NON_CPU_FRAMES = new Set(['(idle)', '(root)'])

export function foldProfiles(profiles: readonly CpuProfile[], nameOf: (frame: CallFrame) => string): Flame {
  const root = createFlame('all')
  for (const profile of profiles) {
    const selfOf = selfTimes(profile)
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
    const calledIds = new Set(profile.nodes.flatMap(({ children }) => children ?? []))
    const visit = (node: ProfileNode, parent: Flame): number => {
      const name = nameOf(node.callFrame)
      const flame = NON_CPU_FRAMES.has(node.callFrame.functionName) ? parent : childOf(parent, name)
      const self = node.callFrame.functionName === '(idle)' ? 0 : (selfOf.get(node.id) ?? 0)
      flame.self += self
      let total = self
      for (const id of node.children ?? []) total += visit(nodes.get(id)!, flame)
      if (flame !== parent) flame.total += total
      return total
    }
    for (const node of profile.nodes) if (!calledIds.has(node.id)) root.total += visit(node, root)
  }
  return root
}

/** Returns the time of each node. A sample counts the time since the one before it. */
function selfTimes({ samples = [], timeDeltas = [] }: CpuProfile): Map<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) times.set(id, (times.get(id) ?? 0) + Math.max(0, timeDeltas[index] ?? 0))
  return times
}

function childOf(parent: Flame, name: string): Flame {
  let child = parent.children.get(name)
  if (!child) {
    child = createFlame(name)
    parent.children.set(name, child)
  }
  return child
}

const createFlame = (name: string): Flame => ({ name, self: 0, total: 0, children: new Map() })

export interface HotFunction {
  readonly name: string
  readonly self: number
  /** Recursion is counted once. */
  readonly total: number
}

/** Returns the functions with the most self time, summed over all callers. */
export function findHottestFunctions(root: Flame, max: number): HotFunction[] {
  const times = new Map<string, { self: number; total: number }>()
  const visit = (flame: Flame, callers: ReadonlySet<string>) => {
    const time = times.get(flame.name) ?? { self: 0, total: 0 }
    time.self += flame.self
    if (!callers.has(flame.name)) time.total += flame.total
    times.set(flame.name, time)
    const stackNames = new Set(callers).add(flame.name)
    for (const child of flame.children.values()) visit(child, stackNames)
  }
  for (const child of root.children.values()) visit(child, new Set())
  return [...times]
    .map(([name, time]) => ({ name, ...time }))
    .sort((a, b) => b.self - a.self)
    .slice(0, max)
}
