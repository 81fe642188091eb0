// Stores the pods that were rejected on all nodes, until an event can make them schedulable. Pods with equal signatures form an
// equivalence class. After an event, only the class's first pod is tried.

import type { ObjectKey } from '../../client/index.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { getOrCreate } from '../get-or-create.ts'

/** Why a pod is unschedulable. */
export interface Rejection {
  /** The message for the user. */
  readonly message: string
  /** Names of the plugins that rejected the pod or a node. */
  readonly rejectedBy: ReadonlySet<string>
  /** The keys of all reasons for which nodes were rejected. */
  readonly reasons: ReadonlySet<string>
  /** Whether all reasons normally disappear within moments. */
  readonly isTransient?: boolean
  /** The signature of the pod's equivalence class. Undefined if the pod belongs to none. */
  readonly signature: string | undefined
}

/** The keys by which queueing hints find a pod. */
export interface IndexKeys {
  /** The keys that all pods of an equivalence class share. */
  readonly classKeys: readonly string[]
  readonly podKeys: readonly string[]
}

interface UnschedulablePod {
  readonly info: PodInfo
}

export interface EquivalenceClass<P extends UnschedulablePod> {
  /** The rejection of the member that was evaluated last. */
  readonly rejection: Rejection
  /** The pods in the order in which they were added. */
  readonly members: ReadonlySet<P>
}

interface MutableClass<P extends UnschedulablePod> extends EquivalenceClass<P> {
  readonly id: string
  readonly members: Set<P>
  rejection: Rejection
  keys: readonly string[]
  /** Whether an event may have changed the result, so that the next member must be evaluated. */
  isStale: boolean
}

export class UnschedulablePods<P extends UnschedulablePod> {
  readonly #classes = new Map<string, MutableClass<P>>()
  readonly #pods = new Map<ObjectKey, { group: MutableClass<P>; pod: P; keys: readonly string[] }>()
  readonly #classesByKey = new Map<string, Set<MutableClass<P>>>()
  readonly #podsByKey = new Map<string, Set<P>>()

  get size(): number {
    return this.#pods.size
  }

  /** Returns the rejection of all pods with this signature, or undefined if the pod must be evaluated. */
  cachedRejection(signature: string): Rejection | undefined {
    const group = this.#classes.get(classId(signature))
    return group?.isStale ? undefined : group?.rejection
  }

  add(pod: P, rejection: Rejection, { classKeys, podKeys }: IndexKeys): void {
    const { key } = pod.info
    this.remove(key)
    const id = rejection.signature === undefined ? `pod ${key}` : classId(rejection.signature)
    let group = this.#classes.get(id)
    if (!group) {
      group = { id, rejection, members: new Set(), keys: [], isStale: false }
      this.#classes.set(id, group)
      this.#indexClass(group, classKeys)
    } else if (group.rejection.reasons !== rejection.reasons) {
      group.rejection = rejection
      this.#indexClass(group, classKeys)
    }
    group.isStale = false
    group.members.add(pod)
    this.#pods.set(key, { group, pod, keys: podKeys })
    for (const indexKey of podKeys) addToIndex(this.#podsByKey, indexKey, pod)
  }

  /** Replaces the rejection of the pod's equivalence class and the index keys of its members. */
  replaceRejection(key: ObjectKey, rejection: Rejection, keysOf: (pod: P) => IndexKeys): void {
    const group = this.#pods.get(key)?.group
    if (!group) return
    group.rejection = rejection
    for (const pod of group.members) {
      const indexedPod = this.#pods.get(pod.info.key)!
      const { classKeys, podKeys } = keysOf(pod)
      for (const indexKey of indexedPod.keys) removeFromIndex(this.#podsByKey, indexKey, pod)
      for (const indexKey of podKeys) addToIndex(this.#podsByKey, indexKey, pod)
      this.#pods.set(pod.info.key, { ...indexedPod, keys: podKeys })
      this.#indexClass(group, classKeys) // all members have the same class keys
    }
  }

  remove(key: ObjectKey): boolean {
    const indexedPod = this.#pods.get(key)
    if (!indexedPod) return false
    const { group, pod, keys } = indexedPod
    this.#pods.delete(key)
    for (const indexKey of keys) removeFromIndex(this.#podsByKey, indexKey, pod)
    group.members.delete(pod)
    if (group.members.size > 0) return true
    this.#classes.delete(group.id)
    this.#indexClass(group, [])
    return true
  }

  /** Removes a pod that is about to be evaluated again on behalf of its class. */
  takeForRetry(key: ObjectKey): void {
    const group = this.#pods.get(key)?.group
    if (group) group.isStale = true
    this.remove(key)
  }

  /** Returns the member of the class that was added first. */
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

  #indexClass(group: MutableClass<P>, keys: readonly string[]): void {
    for (const key of group.keys) removeFromIndex(this.#classesByKey, key, group)
    group.keys = keys
    for (const key of keys) addToIndex(this.#classesByKey, key, group)
  }
}

const classId = (signature: string): string => `class ${signature}`

function addToIndex<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  getOrCreate(index, key, () => new Set()).add(item)
}

function removeFromIndex<T>(index: Map<string, Set<T>>, key: string, item: T): void {
  const items = index.get(key)
  items?.delete(item)
  if (items?.size === 0) index.delete(key)
}
