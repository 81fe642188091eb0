// Pods that every node rejected, kept until an event can make one of them schedulable. Pods with equal signatures form an
// equivalence class: an event that can help one can help all, so the first is tried, and the next once that one is
// placed. The cost of an event depends on the pods it affects, not on all unschedulable pods.

import type { ObjectKey } from '../../client/index.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { getOrCreate } from '../get-or-create.ts'

/** Why a pod is unschedulable. */
export interface Rejection {
  /** What the pod's owner reads. */
  readonly message: string
  /** Names of the plugins that rejected the pod or a node. */
  readonly rejectedBy: ReadonlySet<string>
  /** The reasonKey of every reason given for some node. */
  readonly reasons: ReadonlySet<string>
  /** Equal for all pods of an equivalence class; undefined for a pod in none. */
  readonly signature: string | undefined
}

/** The keys by which queueing hints find a pod. */
export interface IndexKeys {
  /** The same for all pods of an equivalence class. */
  readonly ofClass: readonly string[]
  readonly ofPod: readonly string[]
}

interface Unschedulable {
  readonly info: PodInfo
}

export interface EquivalenceClass<P extends Unschedulable> {
  /** Of the member evaluated last. */
  readonly rejection: Rejection
  /** In the order they were added. */
  readonly members: ReadonlySet<P>
}

interface ClassEntry<P extends Unschedulable> extends EquivalenceClass<P> {
  readonly id: string
  readonly members: Set<P>
  rejection: Rejection
  keys: readonly string[]
  /** An event can have changed the result: the next member is evaluated. */
  isStale: boolean
}

export class UnschedulablePods<P extends Unschedulable> {
  readonly #classes = new Map<string, ClassEntry<P>>()
  readonly #pods = new Map<ObjectKey, { group: ClassEntry<P>; pod: P; keys: readonly string[] }>()
  readonly #classesByKey = new Map<string, Set<ClassEntry<P>>>()
  readonly #podsByKey = new Map<string, Set<P>>()

  get size(): number {
    return this.#pods.size
  }

  /** The rejection that holds for every pod with this signature; undefined if the pod has to be evaluated. */
  cachedRejection(signature: string): Rejection | undefined {
    const group = this.#classes.get(classId(signature))
    return group?.isStale ? undefined : group?.rejection
  }

  add(pod: P, rejection: Rejection, { ofClass, ofPod }: IndexKeys): void {
    const { key } = pod.info
    this.remove(key)
    const id = rejection.signature === undefined ? `pod ${key}` : classId(rejection.signature)
    let group = this.#classes.get(id)
    if (!group) {
      group = { id, rejection, members: new Set(), keys: [], isStale: false }
      this.#classes.set(id, group)
      this.#indexClass(group, ofClass)
    } else if (group.rejection.reasons !== rejection.reasons) {
      group.rejection = rejection
      this.#indexClass(group, ofClass)
    }
    group.isStale = false
    group.members.add(pod)
    this.#pods.set(key, { group, pod, keys: ofPod })
    for (const one of ofPod) addTo(this.#podsByKey, one, pod)
  }

  /** Replaces the rejection of the pod's whole class, and with it the keys by which its pods are found. */
  replaceRejection(key: ObjectKey, rejection: Rejection, keysOf: (pod: P) => IndexKeys): void {
    const group = this.#pods.get(key)?.group
    if (!group) return
    group.rejection = rejection
    for (const pod of group.members) {
      const known = this.#pods.get(pod.info.key)!
      const { ofClass, ofPod } = keysOf(pod)
      for (const one of known.keys) removeFrom(this.#podsByKey, one, pod)
      for (const one of ofPod) addTo(this.#podsByKey, one, pod)
      this.#pods.set(pod.info.key, { ...known, keys: ofPod })
      this.#indexClass(group, ofClass) // the same for every member
    }
  }

  remove(key: ObjectKey): boolean {
    const known = this.#pods.get(key)
    if (!known) return false
    const { group, pod, keys } = known
    this.#pods.delete(key)
    for (const one of keys) removeFrom(this.#podsByKey, one, pod)
    group.members.delete(pod)
    if (group.members.size > 0) return true
    this.#classes.delete(group.id)
    this.#indexClass(group, [])
    return true
  }

  /** Removes the pod to evaluate it again, for itself and for its class. */
  takeForRetry(key: ObjectKey): void {
    const group = this.#pods.get(key)?.group
    if (group) group.isStale = true
    this.remove(key)
  }

  /** The member of the class that has been here longest. */
  firstOfClass(signature: string): P | undefined {
    const [first] = this.#classes.get(classId(signature))?.members ?? []
    return first
  }

  classesByKey(key: string): readonly EquivalenceClass<P>[] {
    return [...(this.#classesByKey.get(key) ?? [])]
  }

  podsByKey(key: string): readonly P[] {
    return [...(this.#podsByKey.get(key) ?? [])]
  }

  rejectionOf(key: ObjectKey): Rejection | undefined {
    return this.#pods.get(key)?.group.rejection
  }

  #indexClass(group: ClassEntry<P>, keys: readonly string[]): void {
    for (const key of group.keys) removeFrom(this.#classesByKey, key, group)
    group.keys = keys
    for (const key of keys) addTo(this.#classesByKey, key, group)
  }
}

const classId = (signature: string): string => `class ${signature}`

function addTo<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  getOrCreate(index, key, () => new Set()).add(item)
}

function removeFrom<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  const items = index.get(key)
  items?.delete(item)
  if (items?.size === 0) index.delete(key)
}
