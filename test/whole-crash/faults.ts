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

/** Longest pause between two kills. */
const KILL_INTERVAL_MS_MAX = 1_400
/** Longest time a killed component stays down. */
const DOWNTIME_MS_MAX = 700
/** No component makes progress without the server, so it is killed less often than the others. */
const SERVER_KILL_SHARE = 0.06
/** If the server has not been killed after this many kills, it is next: even a short run includes a server crash. */
const FIRST_SERVER_KILL_AFTER = 10
/** Probability that a restarting component may be killed again before it is ready. */
const REPEATED_KILL_SHARE = 0.3

export function createFaults(cluster: Cluster, random: () => number): Faults {
  const kills = new Map<string, number>()
  /** Components that must not be killed now, each with the token of the restart or node loss that holds it. */
  const busy = new Map<Component, symbol>()
  const underWay = new Set<Promise<void>>()
  const stopped = new AbortController()
  const others = cluster.components.filter(({ kind }) => kind !== 'server')
  const server = cluster.components.find(({ kind }) => kind === 'server')!
  const total = () => [...kills.values()].reduce((sum, count) => sum + count, 0)
  const isServerDue = () => total() >= FIRST_SERVER_KILL_AFTER && !kills.has('server')
  const pick = (): Component =>
    isServerDue() || random() < SERVER_KILL_SHARE ? server : others[Math.floor(random() * others.length)]!

  async function kill(component: Component): Promise<void> {
    await component.kill()
    kills.set(component.kind, (kills.get(component.kind) ?? 0) + 1)
  }

  async function restart(component: Component): Promise<void> {
    const mine = Symbol(component.name)
    const release = () => void (busy.get(component) === mine && busy.delete(component))
    busy.set(component, mine)
    await kill(component)
    await pause(random() * DOWNTIME_MS_MAX)
    const ready = component.start()
    if (component !== server && random() < REPEATED_KILL_SHARE) release()
    await ready
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
      while (!stopped.signal.aborted) {
        await pause(random() * KILL_INTERVAL_MS_MAX)
        const component = pick()
        if (stopped.signal.aborted || busy.has(component)) continue
        void track(restart(component))
      }
    },
    loseNode: (node, ms) =>
      track(
        (async () => {
          const lost = cluster.components.filter((component) => component.node === node)
          // A restart in progress would start the component during the fault.
          while (lost.some((component) => busy.has(component))) await pause(50)
          for (const component of lost) busy.set(component, Symbol(component.name))
          await Promise.all(lost.map(kill))
          await pause(ms, undefined, { signal: stopped.signal }).catch(() => {}) // `end` brings the node back early
          await Promise.all(lost.map((component) => component.start()))
          for (const component of lost) busy.delete(component)
        })(),
      ),
    async end() {
      stopped.abort()
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
