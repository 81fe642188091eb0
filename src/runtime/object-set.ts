// Stores the objects of a cache by key and by indexes. An index maps an object to any number of strings. The cost of a
// lookup depends on the size of its result and not on the number of objects.
import type { ObjectKey } from '../client/object-key.ts'

/** Returns the values under which the index lists an object. */
export type IndexFunction<T> = (object: Readonly<T>) => Iterable<string>

/** The keys of the objects that an index lists under a value. Most values have one object, and a set of one takes 250 bytes. */
type Bucket = ObjectKey | Set<ObjectKey>

/** Shared by all lookups without a result, which are the majority. */
const NONE: readonly never[] = Object.freeze([])

export class ObjectSet<T> {
  readonly #objects = new Map<ObjectKey, Readonly<T>>()
  readonly #indexes = new Map<string, Index<T>>()

  get size(): number {
    return this.#objects.size
  }

  get(key: ObjectKey): Readonly<T> | undefined {
    return this.#objects.get(key)
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#objects.keys()
  }

  values(): IterableIterator<Readonly<T>> {
    return this.#objects.values()
  }

  addIndex(name: string, valuesOf: IndexFunction<T>): void {
    if (this.#indexes.has(name)) throw new Error(`There is already an index named "${name}".`)
    const index = { valuesOf, buckets: new Map<string, Bucket>() }
    this.#indexes.set(name, index)
    for (const [key, object] of this.#objects) addToIndex(index, key, object)
  }

  byIndex(name: string, value: string): readonly Readonly<T>[] {
    const index = this.#indexes.get(name)
    if (!index) throw new Error(`There is no index named "${name}".`)
    const bucket = index.buckets.get(value)
    if (bucket === undefined) return NONE
    if (typeof bucket === 'string') return [this.#objects.get(bucket) as Readonly<T>]
    return Array.from(bucket, (key) => this.#objects.get(key) as Readonly<T>)
  }

  put(key: ObjectKey, object: Readonly<T>): void {
    const old = this.#objects.get(key)
    this.#objects.set(key, object)
    for (const index of this.#indexes.values()) {
      if (old) removeFromIndex(index, key, old)
      addToIndex(index, key, object)
    }
  }

  delete(key: ObjectKey): void {
    const old = this.#objects.get(key)
    if (!old) return
    this.#objects.delete(key)
    for (const index of this.#indexes.values()) removeFromIndex(index, key, old)
  }
}

interface Index<T> {
  readonly valuesOf: IndexFunction<T>
  readonly buckets: Map<string, Bucket>
}

function addToIndex<T>({ valuesOf, buckets }: Index<T>, key: ObjectKey, object: Readonly<T>): void {
  for (const value of valuesOf(object)) {
    const bucket = buckets.get(value)
    if (bucket === undefined) buckets.set(value, key)
    else if (typeof bucket !== 'string') bucket.add(key)
    else if (bucket !== key) buckets.set(value, new Set([bucket, key]))
  }
}

function removeFromIndex<T>({ valuesOf, buckets }: Index<T>, key: ObjectKey, object: Readonly<T>): void {
  for (const value of valuesOf(object)) {
    const bucket = buckets.get(value)
    if (bucket === key) buckets.delete(value)
    else if (typeof bucket === 'object' && bucket.delete(key) && bucket.size === 1)
      buckets.set(value, onlyKeyOf(bucket))
  }
}

const onlyKeyOf = (bucket: ReadonlySet<ObjectKey>): ObjectKey => {
  const [key] = bucket
  return key as ObjectKey
}
