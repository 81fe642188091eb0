// When each node was last seen to be alive, by this process's own clock: a renewed lease or a new heartbeat in the status
// counts at the moment it is seen. Timestamps of other machines are only compared with each other for being different.
//
// Only nodes that somebody keeps are judged: those that have a lease, and those whose heartbeat was seen to change. A
// node that was made by hand says nothing by staying as it is.
//
// Holds one entry for every node and every lease of a node there is, and forgets it with the last of the two.
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { heartbeatOf } from './conditions.ts'

interface Life {
  /** The lease as it was last seen, or none. */
  lease: string | undefined
  /** Identity of the Node object, or none. */
  uid: string | undefined
  heartbeat: string | undefined
  isKept: boolean
  seenMs: number
}

export class Heartbeats {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #lives = new Map<string, Life>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  seeLease({ metadata, spec }: Readonly<Lease>): void {
    const life = this.#life(metadata.name ?? '')
    const lease = JSON.stringify([metadata.uid, spec?.holderIdentity, spec?.renewTime])
    if (life.lease === lease) return
    life.lease = lease
    life.isKept = true
    life.seenMs = this.#clock.monotonicMs()
  }

  seeNode(node: Readonly<Node>): void {
    const { name = '', uid } = node.metadata
    const life = this.#life(name)
    const heartbeat = heartbeatOf(node)
    if (life.uid !== uid) {
      life.uid = uid
      life.heartbeat = heartbeat
      life.isKept = life.lease !== undefined
      life.seenMs = this.#clock.monotonicMs()
    } else if (heartbeat !== undefined && heartbeat !== life.heartbeat) {
      // The first heartbeat of all may come from whoever made the node; another one comes from an agent.
      if (life.heartbeat !== undefined) life.isKept = true
      life.heartbeat = heartbeat
      life.seenMs = this.#clock.monotonicMs()
    }
  }

  /** The server did not answer: had the node reported, it would not be known. Its time starts anew. */
  couldNotSee(name: string): void {
    const life = this.#lives.get(name)
    if (life) life.seenMs = this.#clock.monotonicMs()
  }

  /** A node whose lease is taken away is not thereby out of sight. */
  forgetLease(name: string): void {
    const life = this.#lives.get(name)
    if (!life) return
    life.lease = undefined
    if (life.uid === undefined) this.#lives.delete(name)
  }

  forgetNode(name: string): void {
    const life = this.#lives.get(name)
    if (!life) return
    life.uid = undefined
    life.heartbeat = undefined
    if (life.lease === undefined) this.#lives.delete(name)
  }

  isKept(name: string): boolean {
    return this.#lives.get(name)?.isKept ?? false
  }

  silentForMs(name: string): number {
    const life = this.#lives.get(name)
    return life ? this.#clock.monotonicMs() - life.seenMs : 0
  }

  get size(): number {
    return this.#lives.size
  }

  #life(name: string): Life {
    const known = this.#lives.get(name)
    if (known) return known
    const seenMs = this.#clock.monotonicMs()
    const life: Life = { lease: undefined, uid: undefined, heartbeat: undefined, isKept: false, seenMs }
    this.#lives.set(name, life)
    return life
  }
}
