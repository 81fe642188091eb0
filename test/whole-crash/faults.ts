// Kills components at random and restarts them a moment later, possibly several at once. A lost node is all its components
// down together, for longer. `end` waits until every component runs again.
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster, Component } from './cluster.ts'

export interface Faults {
  /** Kills until `end`. */
  run(): Promise<void>
  /** Kills everything on this node for a while; settles when it runs again. */
  loseNode(node: string, ms: number): Promise<void>
  /** Settles when all components run. */
  end(): Promise<void>
  readonly kills: ReadonlyMap<string, number>
}

/** From one kill to the next, and from a kill to the next start, at most. */
const BETWEEN_KILLS_MS = 1_400
const DOWN_MS = 700
/** No component makes progress without the server, so it is killed less often than the others. */
const SERVER_SHARE = 0.06
/** After this many kills the server is killed, so that a short run has one too. */
const SERVER_BY = 10
/** Share of killed components that may be killed again before they are ready. */
const REPEATED_KILL_SHARE = 0.3

export function createFaults(cluster: Cluster, random: () => number): Faults {
  const kills = new Map<string, number>()
  /** Owner of a component while it is down and, mostly, until it is ready. */
  const busy = new Map<Component, symbol>()
  const underWay = new Set<Promise<void>>()
  const over = new AbortController()
  const others = cluster.components.filter(({ kind }) => kind !== 'server')
  const server = cluster.components.find(({ kind }) => kind === 'server')!
  const total = () => [...kills.values()].reduce((sum, count) => sum + count, 0)
  const isServerDue = () => total() >= SERVER_BY && !kills.has('server')
  const pick = (): Component =>
    isServerDue() || random() < SERVER_SHARE ? server : others[Math.floor(random() * others.length)]!

  async function kill(part: Component): Promise<void> {
    await part.kill()
    kills.set(part.kind, (kills.get(part.kind) ?? 0) + 1)
  }

  async function restart(part: Component): Promise<void> {
    const mine = Symbol(part.name)
    const release = () => void (busy.get(part) === mine && busy.delete(part))
    busy.set(part, mine)
    await kill(part)
    await pause(random() * DOWN_MS)
    const isUp = part.start()
    if (part !== server && random() < REPEATED_KILL_SHARE) release()
    await isUp
    release()
  }

  function track(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => void underWay.delete(tracked))
    underWay.add(tracked)
    return tracked
  }

  return {
    kills,
    async run() {
      while (!over.signal.aborted) {
        await pause(random() * BETWEEN_KILLS_MS)
        const part = pick()
        if (over.signal.aborted || busy.has(part)) continue
        void track(restart(part))
      }
    },
    loseNode: (node, ms) =>
      track(
        (async () => {
          const lost = cluster.components.filter((part) => part.node === node)
          // A restart in progress would start the component during the fault.
          while (lost.some((part) => busy.has(part))) await pause(50)
          for (const part of lost) busy.set(part, Symbol(part.name))
          await Promise.all(lost.map(kill))
          await pause(ms, undefined, { signal: over.signal }).catch(() => {}) // it returns when the faults end
          await Promise.all(lost.map((part) => part.start()))
          for (const part of lost) busy.delete(part)
        })(),
      ),
    async end() {
      over.abort()
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
