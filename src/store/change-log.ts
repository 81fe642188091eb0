// The changes that are still kept, oldest first, and the floor below which they are gone.
// Watches replay from here; compaction takes from the old end, a few at a time.
// A store has one log for ordinary keys and one for the `brief` ones, so each class of keys has its own floor.
//
// Passing a change raises the floor to its revision and drops what only older readers could see:
// the state it superseded, and, if it is a tombstone, the tombstone too.
//   log             a@1  b@2  a@4  b@5†          floor 0
//   pass a@1, b@2             a@4  b@5†          floor 2   nothing to drop: both states are still current at 2
//   pass a@4                       b@5†          floor 4   drops a@1
//   pass b@5†                                    floor 5   drops b@2 and b@5†; a@4 stays, it is the state of a
import type { Revision } from './store.ts'
import { type Version, versionBefore } from './version.ts'

const CHANGES_PER_ENTRY_MAX = 10 // creations supersede nothing, yet fill the log: beyond 10 x entriesMax the oldest go
const AGES_PER_KEEP = 16 // changes are dated in groups of keepMs / 16: the last of a group sets its age

export interface ChangeLogOptions {
  readonly keepMs: number
  readonly entriesMax: number
  readonly floor: Revision
}

/** All changes up to `revision` (and after the group before) were made at `atMs` or before. */
interface AgeGroup {
  readonly sinceMs: number
  atMs: number
  revision: Revision
}

export class ChangeLog {
  readonly #keepMs: number
  readonly #entriesMax: number
  #floor: Revision
  #versions: Version[] = []
  #head = 0
  #entries = 0
  #ages: AgeGroup[] = []

  constructor({ keepMs, entriesMax, floor }: ChangeLogOptions) {
    this.#keepMs = keepMs
    this.#entriesMax = entriesMax
    this.#floor = floor
  }

  /** Reads and watches from this revision on are possible; earlier ones are compacted. */
  get floor(): Revision {
    return this.#floor
  }

  /** Superseded states and tombstones that are kept. */
  get entries(): number {
    return this.#entries
  }

  get length(): number {
    return this.#versions.length - this.#head
  }

  append(version: Version, nowMs: number): void {
    this.#versions.push(version)
    this.#entries += droppedBy(version)
    const age = this.#ages.at(-1)
    if (age && nowMs - age.sinceMs <= this.#keepMs / AGES_PER_KEEP) {
      age.atMs = nowMs
      age.revision = version.revision
    } else {
      this.#ages.push({ sinceMs: nowMs, atMs: nowMs, revision: version.revision })
    }
  }

  /** Passes what has had its time, as far as `revisionMax`, and answers the versions whose records may go. */
  compact({ nowMs, revisionMax, dropsMax }: { nowMs: number; revisionMax: Revision; dropsMax: number }): Version[] {
    const dropped: Version[] = []
    const agedRevision = this.#agedRevision(nowMs)
    while (dropped.length < dropsMax) {
      const version = this.#versions[this.#head]
      if (!version || version.revision > revisionMax) break
      if (version.revision > agedRevision && !this.#isOverfull()) break
      this.#pass(version, dropped)
    }
    if (this.#head > 1_024 && this.#head > this.#versions.length / 2) {
      this.#versions = this.#versions.slice(this.#head)
      this.#head = 0
    }
    const oldest = this.#versions[this.#head]
    while (this.#ages[0] && (!oldest || this.#ages[0].revision < oldest.revision)) this.#ages.shift()
    return dropped
  }

  /** When there will be something to pass, if nothing else changes; undefined when the log is empty. */
  dueAtMs(): number | undefined {
    if (this.length === 0) return undefined
    if (this.#isOverfull()) return Number.NEGATIVE_INFINITY
    return (this.#ages[0] as AgeGroup).atMs + this.#keepMs
  }

  /** A cursor to the first kept change after that revision. It is good until the next compact(). */
  positionAfter(revision: Revision): number {
    let low = this.#head
    let high = this.#versions.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#versions[middle] as Version).revision <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  at(position: number): Version | undefined {
    return this.#versions[position]
  }

  #isOverfull(): boolean {
    return this.#entries > this.#entriesMax || this.length > this.#entriesMax * CHANGES_PER_ENTRY_MAX
  }

  #agedRevision(nowMs: number): Revision {
    let revision = 0
    for (const age of this.#ages) {
      if (age.atMs + this.#keepMs > nowMs) break
      revision = age.revision
    }
    return revision
  }

  #pass(version: Version, dropped: Version[]): void {
    this.#entries -= droppedBy(version)
    const before = versionBefore(version)
    if (before) dropped.push(before)
    if (version.deleted) dropped.push(version)
    version.previous = undefined
    this.#head++
    if (version.revision > this.#floor) this.#floor = version.revision
  }
}

function droppedBy(version: Version): number {
  return (versionBefore(version) ? 1 : 0) + (version.deleted ? 1 : 0)
}
