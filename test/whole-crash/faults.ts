// Kills random components and restarts them after a short pause. Several components may be down at once. A failed node has
// all its components down together, for longer. `stop` waits until every component runs again.
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster, Component } from './cluster.ts'

export interface Faults {
  /** Kills random components until `stop` is called. */
  run(): Promise<void>
  /** Kills all components of the node and restarts them after this time. Resolves when they are ready. */
  failNode(node: string, ms: number): Promise<void>
  /** Stops killing. Resolves when all components are ready. */
  stop(): Promise<void>
  /** Number of kills by kind of component. */
  readonly kills: ReadonlyMap<string, number>
}

/** Longest pause between two kills. */
const KILL_INTERVAL_MS_MAX = 1_400
/** Longest time a killed component stays down. */
const DOWNTIME_MS_MAX = 700
/** Probability that the server is killed. It is low, because no component makes progress without the server. */
const SERVER_KILL_SHARE = 0.06
/** The server is killed next if it was not among this many first kills, so that short runs include a server crash. */
const FIRST_SERVER_KILL_AFTER = 10
/** Probability that a restarting component can be killed again before it is ready. */
const REPEATED_KILL_SHARE = 0.3

export function createFaults(cluster: Cluster, random: () => number): Faults {
  const kills = new Map<string, number>()
  /** Components that must not be killed now, each with the token of the restart or node failure that locked it. */
  const locks = new Map<Component, symbol>()
  const pendingRestarts = new Set<Promise<void>>()
  const stopController = new AbortController()
  const nonServerComponents = cluster.components.filter(({ kind }) => kind !== 'server')
  const server = cluster.components.find(({ kind }) => kind === 'server')!
  const totalKills = () => [...kills.values()].reduce((sum, count) => sum + count, 0)
  const isServerDue = () => totalKills() >= FIRST_SERVER_KILL_AFTER && !kills.has('server')
  const pickComponent = (): Component =>
    isServerDue() || random() < SERVER_KILL_SHARE
      ? server
      : nonServerComponents[Math.floor(random() * nonServerComponents.length)]!

  async function kill(component: Component): Promise<void> {
    await component.kill()
    kills.set(component.kind, (kills.get(component.kind) ?? 0) + 1)
  }

  async function killAndRestart(component: Component): Promise<void> {
    const token = Symbol(component.name)
    const unlock = () => void (locks.get(component) === token && locks.delete(component))
    locks.set(component, token)
    await kill(component)
    await pause(random() * DOWNTIME_MS_MAX)
    const ready = component.start()
    if (component !== server && random() < REPEATED_KILL_SHARE) unlock()
    await ready
    unlock()
  }

  function trackPending(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => void pendingRestarts.delete(tracked))
    pendingRestarts.add(tracked)
    return tracked
  }

  return {
    kills,
    async run() {
      while (!stopController.signal.aborted) {
        await pause(random() * KILL_INTERVAL_MS_MAX)
        const component = pickComponent()
        if (stopController.signal.aborted || locks.has(component)) continue
        void trackPending(killAndRestart(component))
      }
    },
    failNode: (node, ms) =>
      trackPending(
        (async () => {
          const nodeComponents = cluster.components.filter((component) => component.node === node)
          // Wait for restarts in progress: they would start components of the failed node.
          while (nodeComponents.some((component) => locks.has(component))) await pause(50)
          for (const component of nodeComponents) locks.set(component, Symbol(component.name))
          await Promise.all(nodeComponents.map(kill))
          await pause(ms, undefined, { signal: stopController.signal }).catch(() => {}) // `stop` ends the downtime early
          await Promise.all(nodeComponents.map((component) => component.start()))
          for (const component of nodeComponents) locks.delete(component)
        })(),
      ),
    async stop() {
      stopController.abort()
      while (pendingRestarts.size > 0) await Promise.all(pendingRestarts)
    },
  }
}
