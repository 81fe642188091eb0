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
    for (const [key, object] of this.#objects) addToIndex(index, key, valuesOf(object))
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
      if (old) updateIndex(index, key, old, object)
      else addToIndex(index, key, index.valuesOf(object))
    }
  }

  delete(key: ObjectKey): void {
    const old = this.#objects.get(key)
    if (!old) return
    this.#objects.delete(key)
    for (const index of this.#indexes.values()) removeFromIndex(index, key, index.valuesOf(old))
  }
}

interface Index<T> {
  readonly valuesOf: IndexFunction<T>
  readonly buckets: Map<string, Bucket>
}

function addToIndex<T>({ buckets }: Index<T>, key: ObjectKey, values: Iterable<string>): void {
  for (const value of values) {
    const bucket = buckets.get(value)
    if (bucket === undefined) buckets.set(value, key)
    else if (typeof bucket !== 'string') bucket.add(key)
    else if (bucket !== key) buckets.set(value, new Set([bucket, key]))
  }
}

function removeFromIndex<T>({ buckets }: Index<T>, key: ObjectKey, values: Iterable<string>): void {
  for (const value of values) {
    const bucket = buckets.get(value)
    if (bucket === key) buckets.delete(value)
    else if (typeof bucket === 'object' && bucket.delete(key) && bucket.size === 1)
      buckets.set(value, onlyKeyOf(bucket))
  }
}

/** Most updates change none of the values: they then do not change the buckets, of which some list every object of the set. */
function updateIndex<T>(index: Index<T>, key: ObjectKey, old: Readonly<T>, object: Readonly<T>): void {
  const [oldValues, values] = [index.valuesOf(old), index.valuesOf(object)]
  if (Array.isArray(oldValues) && Array.isArray(values) && hasSameItems(oldValues, values)) return
  removeFromIndex(index, key, oldValues)
  addToIndex(index, key, values)
}

const hasSameItems = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, position) => item === b[position])

const onlyKeyOf = (bucket: ReadonlySet<ObjectKey>): ObjectKey => {
  const [key] = bucket
  return key as ObjectKey
}
