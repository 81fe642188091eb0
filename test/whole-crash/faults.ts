// Makes random components fail and recover after a short pause: kills and restarts them, and where a component allows it,
// freezes it or cuts its network. Several components may be down at once. `failNode` kills all components of a node together,
// for a longer time. `stop` waits until every component is ready again.
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster, Component } from './cluster.ts'

export interface Faults {
  /** Makes random components fail until `stop` is called. */
  run(): Promise<void>
  /** Kills all components of the node and restarts them after this time, or at `stop`. Resolves when they are ready. */
  failNode(node: string, ms: number): Promise<void>
  /** Starts no more faults. Resolves when all components are ready. */
  stop(): Promise<void>
  /** Number of kills by kind of component, and of other faults by their description, such as `server frozen`. */
  readonly counts: ReadonlyMap<string, number>
}

/** Longest pause between two faults. */
const INTERVAL_MS_MAX = 1_400
/** Longest time a killed component stays down. */
const DOWNTIME_MS_MAX = 700
/** Longest time that a component is frozen or cut off. It exceeds the lease duration of a leader. */
const FREEZE_MS_MAX = 9_000
/** Probability that the only server is chosen. It is low, because no component makes progress without it. */
const SERVER_SHARE = 0.06
/** If no server was killed in this many faults, only servers fail until one is killed, so that short runs include a server crash. */
const FIRST_SERVER_FAULT_AFTER = 10
/** Probability that a restarting component other than a server can fail again before it is ready. */
const REPEATED_FAULT_SHARE = 0.3
/** Probability of each other fault that a component allows, instead of a kill. */
const OTHER_FAULT_SHARE = 0.3

export function createFaults(cluster: Cluster, random: () => number): Faults {
  const counts = new Map<string, number>()
  /** Components that must not fail now, each with the token of the fault that locked it. */
  const locks = new Map<Component, symbol>()
  const pendingFaults = new Set<Promise<void>>()
  const stopController = new AbortController()
  const servers = cluster.components.filter(({ kind }) => kind === 'server')
  const otherComponents = cluster.components.filter(({ kind }) => kind !== 'server')
  const pickOf = (components: readonly Component[]) => components[Math.floor(random() * components.length)]!
  const totalCount = () => [...counts.values()].reduce((sum, count) => sum + count, 0)
  const isServerDue = () => totalCount() >= FIRST_SERVER_FAULT_AFTER && !counts.has('server')
  const serverShare = servers.length > 1 ? servers.length / cluster.components.length : SERVER_SHARE
  const pickComponent = (): Component =>
    isServerDue() || random() < serverShare ? pickOf(servers) : pickOf(otherComponents)
  const count = (fault: string) => void counts.set(fault, (counts.get(fault) ?? 0) + 1)

  async function kill(component: Component): Promise<void> {
    await component.kill()
    count(component.kind)
  }

  async function killAndRestart(component: Component, unlock: () => void): Promise<void> {
    await kill(component)
    await pause(random() * DOWNTIME_MS_MAX)
    const startup = component.start()
    if (component.kind !== 'server' && random() < REPEATED_FAULT_SHARE) unlock()
    await startup
  }

  /** Waits for the duration of a fault. `stop` ends the fault early. */
  const pauseWhileFailed = () =>
    pause(random() * FREEZE_MS_MAX, undefined, { signal: stopController.signal }).catch(() => {})

  async function fail(component: Component): Promise<void> {
    const token = Symbol(component.name)
    const unlock = () => void (locks.get(component) === token && locks.delete(component))
    locks.set(component, token)
    const { kind, freeze, network } = component
    if (freeze && random() < OTHER_FAULT_SHARE) {
      count(`${kind} frozen`)
      freeze.stop()
      await pauseWhileFailed()
      freeze.continue()
    } else if (network && random() < OTHER_FAULT_SHARE) {
      count(`${kind} cut off`)
      network.cut(random() < 0.5 ? 'closed' : 'silent')
      await pauseWhileFailed()
      network.restore()
    } else {
      await killAndRestart(component, unlock)
    }
    unlock()
  }

  function trackPending(work: Promise<void>): Promise<void> {
    const trackedWork = work.finally(() => void pendingFaults.delete(trackedWork))
    pendingFaults.add(trackedWork)
    return trackedWork
  }

  return {
    counts,
    async run() {
      while (!stopController.signal.aborted) {
        await pause(random() * INTERVAL_MS_MAX)
        const component = pickComponent()
        if (stopController.signal.aborted || locks.has(component)) continue
        void trackPending(fail(component))
      }
    },
    failNode: (node, ms) =>
      trackPending(
        (async () => {
          const nodeComponents = cluster.components.filter((component) => component.node === node)
          // Wait for faults in progress: they would start components of the failed node.
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
      while (pendingFaults.size > 0) await Promise.all(pendingFaults)
    },
  }
}
