// Pods no node would take, kept until something changes that could help them. Pods that are alike in everything that was
// judged stand in one group: what could help one could help all, so one of them is tried, and the next when that one
// was placed. A change costs what it concerns, however many pods wait.

import type { ObjectKey } from '../../client/index.ts'
import { getOrMake } from '../get-or-make.ts'
import type { PodFacts } from '../pod-facts.ts'

/** Why a pod is parked. */
export interface Rejection {
  readonly because: string
  /** Names of the plugins that refused it somewhere. */
  readonly rejectedBy: ReadonlySet<string>
  /** Every reason that was given for some node. */
  readonly reasons: ReadonlySet<string>
  /** Equal for pods that would be judged alike; absent for a pod that is like no other. */
  readonly likeness: string | undefined
}

export interface Parked {
  readonly facts: PodFacts
}

export interface Group<P extends Parked> {
  readonly rejection: Rejection
  /** In the order they were parked. */
  readonly members: ReadonlySet<P>
}

interface OwnGroup<P extends Parked> extends Group<P> {
  readonly id: string
  readonly members: Set<P>
  /** The newest verdict on one of them. */
  rejection: Rejection
  /** What they wait for together. */
  interests: readonly string[]
  /** Something has changed that could help: the next of them is judged anew. */
  isInDoubt: boolean
}

export interface Interests {
  /** The same for all pods that are alike. */
  readonly shared: readonly string[]
  /** Of this pod alone. */
  readonly own: readonly string[]
}

export class ParkedPods<P extends Parked> {
  readonly #groups = new Map<string, OwnGroup<P>>()
  readonly #groupOf = new Map<ObjectKey, { group: OwnGroup<P>; pod: P; own: readonly string[] }>()
  readonly #groupsByInterest = new Map<string, Set<OwnGroup<P>>>()
  readonly #podsByInterest = new Map<string, Set<P>>()

  get size(): number {
    return this.#groupOf.size
  }

  /** The verdict on pods like this one, while one of them waits here and nothing has changed that could help it. */
  verdictOn(likeness: string): Rejection | undefined {
    const group = this.#groups.get(alike(likeness))
    return group?.isInDoubt ? undefined : group?.rejection
  }

  park(pod: P, rejection: Rejection, { shared, own }: Interests): void {
    const { key } = pod.facts
    this.remove(key)
    const id = rejection.likeness === undefined ? `pod ${key}` : alike(rejection.likeness)
    let group = this.#groups.get(id)
    if (!group) {
      group = { id, rejection, members: new Set(), interests: [], isInDoubt: false }
      this.#groups.set(id, group)
      this.#interest(group, shared)
    } else if (group.rejection.reasons !== rejection.reasons) {
      group.rejection = rejection
      this.#interest(group, shared)
    }
    group.isInDoubt = false
    group.members.add(pod)
    this.#groupOf.set(key, { group, pod, own })
    for (const interest of own) enter(this.#podsByInterest, interest, pod)
  }

  /** Grounds have been added to those on which this pod, and those like it, would be refused. */
  widen(key: ObjectKey, rejection: Rejection, interestsOf: (pod: P) => Interests): void {
    const group = this.#groupOf.get(key)?.group
    if (!group) return
    group.rejection = rejection
    for (const pod of group.members) {
      const known = this.#groupOf.get(pod.facts.key)!
      const { shared, own } = interestsOf(pod)
      for (const interest of known.own) leave(this.#podsByInterest, interest, pod)
      for (const interest of own) enter(this.#podsByInterest, interest, pod)
      this.#groupOf.set(pod.facts.key, { ...known, own })
      this.#interest(group, shared) // the same for all of them
    }
  }

  remove(key: ObjectKey): boolean {
    const known = this.#groupOf.get(key)
    if (!known) return false
    const { group, pod, own } = known
    this.#groupOf.delete(key)
    for (const interest of own) leave(this.#podsByInterest, interest, pod)
    group.members.delete(pod)
    if (group.members.size > 0) return true
    this.#groups.delete(group.id)
    this.#interest(group, [])
    return true
  }

  /** The pod is taken away to be judged anew, for itself and for those like it. */
  takeToTry(key: ObjectKey): void {
    const group = this.#groupOf.get(key)?.group
    if (group) group.isInDoubt = true
    this.remove(key)
  }

  #interest(group: OwnGroup<P>, interests: readonly string[]): void {
    for (const interest of group.interests) leave(this.#groupsByInterest, interest, group)
    group.interests = interests
    for (const interest of interests) enter(this.#groupsByInterest, interest, group)
  }

  /** The one that has waited longest of those that are alike. */
  firstLike(likeness: string): P | undefined {
    const [first] = this.#groups.get(alike(likeness))?.members ?? []
    return first
  }

  groupsFor(interest: string): readonly Group<P>[] {
    return [...(this.#groupsByInterest.get(interest) ?? [])]
  }

  podsFor(interest: string): readonly P[] {
    return [...(this.#podsByInterest.get(interest) ?? [])]
  }

  rejectionOf(key: ObjectKey): Rejection | undefined {
    return this.#groupOf.get(key)?.group.rejection
  }
}

const alike = (likeness: string): string => `like ${likeness}`

function enter<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  getOrMake(index, key, () => new Set()).add(item)
}

function leave<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  const items = index.get(key)
  items?.delete(item)
  if (items?.size === 0) index.delete(key)
}
