// The latest state of one watched collection: the trimmed JSON of each object, and the latest deletions, so that a tab can resume
// from its revision. watched-collection.ts updates it.

export interface ObjectEntry {
  readonly json: string
  /** Revision of the object's last change. */
  readonly revision: number
}

/**
 * Beyond this, the oldest deletions are dropped. A tab with a revision before a dropped deletion receives the whole list again.
 */
const DELETIONS_MAX = 10_000

export interface ObjectState {
  readonly size: number
  /** The sum of the lengths of the objects' JSON texts, without deleted objects. */
  readonly bytes: number
  uids(): Iterable<string>
  get(uid: string): ObjectEntry | undefined
  /** Returns the type of the change, or undefined if the object is unchanged. */
  put(uid: string, entry: ObjectEntry): 'ADDED' | 'MODIFIED' | undefined
  /** `entry` is the last state of the object, with the revision of the deletion. Returns whether the object was known. */
  delete(uid: string, entry: ObjectEntry): boolean
  getDeleted(uid: string): ObjectEntry | undefined
  /** The list is complete at this revision. Earlier deletions are not known. */
  setListed(revision: number): void
  /** Returns the uids that changed after the revision, or undefined if they are unknown. */
  changedSince(revision: number): { readonly modified: string[]; readonly deleted: string[] } | undefined
}

export function createObjectState(): ObjectState {
  const entries = new Map<string, ObjectEntry>()
  const deletions = new Map<string, ObjectEntry>()
  /** All deletions after this revision are known. */
  let knownSince = Number.POSITIVE_INFINITY
  let bytes = 0
  return {
    get size() {
      return entries.size
    },
    get bytes() {
      return bytes
    },
    uids: () => entries.keys(),
    get: (uid) => entries.get(uid),
    put(uid, entry) {
      const previous = entries.get(uid)
      if (previous?.json === entry.json) return undefined
      entries.set(uid, entry)
      bytes += entry.json.length - (previous?.json.length ?? 0)
      return previous ? 'MODIFIED' : 'ADDED'
    },
    delete(uid, entry) {
      const previous = entries.get(uid)
      if (!previous) return false
      entries.delete(uid)
      bytes -= previous.json.length
      deletions.set(uid, entry)
      const [oldest] = deletions
      if (deletions.size > DELETIONS_MAX && oldest) {
        deletions.delete(oldest[0])
        knownSince = oldest[1].revision
      }
      return true
    },
    getDeleted: (uid) => deletions.get(uid),
    setListed(revision) {
      if (knownSince === Number.POSITIVE_INFINITY) knownSince = revision
    },
    changedSince(revision) {
      if (!(revision >= knownSince)) return undefined
      const changedIn = (map: ReadonlyMap<string, ObjectEntry>) =>
        [...map].filter(([, entry]) => entry.revision > revision).map(([uid]) => uid)
      return { modified: changedIn(entries), deleted: changedIn(deletions) }
    },
  }
}
