// Kills parts at random and starts them again a moment later, several at once if it so happens. A node that is lost is all
// parts of it, down together for longer. `end` waits until everything runs again.
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster, Part } from './cluster.ts'

export interface Faults {
  /** Kills until `end`. */
  run(): Promise<void>
  /** Everything on this node is gone for a while; settles when it is back. */
  lose(node: string, ms: number): Promise<void>
  /** Settles when all parts run. */
  end(): Promise<void>
  readonly kills: ReadonlyMap<string, number>
}

/** From one kill to the next, and from a kill to the next start, at most. */
const BETWEEN_KILLS_MS = 1_400
const DOWN_MS = 700
/** Without the server nobody gets on: it is killed less often than each of the others. */
const SERVER_SHARE = 0.06
/** Also in a short run it is killed once: by then at the latest. */
const SERVER_BY = 10
/** Of those killed, how many may be hit again before they are ready. */
const HASTE = 0.3

export function createFaults(cluster: Cluster, random: () => number): Faults {
  const kills = new Map<string, number>()
  /** Who has a part in hand: while it is down, and mostly until it is ready, nobody else may touch it. */
  const busy = new Map<Part, symbol>()
  const underWay = new Set<Promise<void>>()
  const over = new AbortController()
  const others = cluster.parts.filter(({ sort }) => sort !== 'server')
  const server = cluster.parts.find(({ sort }) => sort === 'server')!
  const total = () => [...kills.values()].reduce((sum, count) => sum + count, 0)
  const isServerDue = () => total() >= SERVER_BY && !kills.has('server')
  const pick = (): Part =>
    isServerDue() || random() < SERVER_SHARE ? server : others[Math.floor(random() * others.length)]!

  async function kill(part: Part): Promise<void> {
    await part.kill()
    kills.set(part.sort, (kills.get(part.sort) ?? 0) + 1)
  }

  async function bounce(part: Part): Promise<void> {
    const mine = Symbol(part.name)
    const letGo = () => void (busy.get(part) === mine && busy.delete(part))
    busy.set(part, mine)
    await kill(part)
    await pause(random() * DOWN_MS)
    const isUp = part.start()
    if (part !== server && random() < HASTE) letGo()
    await isUp
    letGo()
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
        void track(bounce(part))
      }
    },
    lose: (node, ms) =>
      track(
        (async () => {
          const lost = cluster.parts.filter((part) => part.node === node)
          // Whoever bounces one of them would start it meanwhile.
          while (lost.some((part) => busy.has(part))) await pause(50)
          for (const part of lost) busy.set(part, Symbol(part.name))
          await Promise.all(lost.map(kill))
          await pause(ms, undefined, { signal: over.signal }).catch(() => {}) // when faults are over it comes back
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
