// ChangeLog: the retained changes in revision order, and the floor, which is the oldest revision that can be read or watched.
// Watches replay the log; compaction retires the oldest changes, a bounded number at a time.
//
// Retiring a change raises the floor to its revision and drops the versions that are no longer readable: the superseded
// version and, if the change is a tombstone, the tombstone itself.
//   log               a@1  b@2  a@4  b@5†        floor 0
//   retire a@1, b@2             a@4  b@5†        floor 2   drops nothing: both are current at revision 2
//   retire a@4                       b@5†        floor 4   drops a@1
//   retire b@5†                                  floor 5   drops b@2 and b@5†; retains a@4, the current state of a
import type { Revision } from './store.ts'
import { type Version, versionBefore } from './version.ts'

const CHANGES_PER_ENTRY_MAX = 10 // the log holds at most 10 x entriesMax changes, because creates supersede no version
const AGE_GROUPS_PER_KEEP = 16 // changes within keepMs / 16 form an age group, which is as old as its last change

export interface ChangeLogOptions {
  readonly keepMs: number
  readonly entriesMax: number
  readonly bytesMax: number
  readonly floor: Revision
}

/** The changes after the previous group and up to `revision`, which were made between `sinceMs` and `atMs`. */
interface AgeGroup {
  readonly sinceMs: number
  atMs: number
  revision: Revision
}

export class ChangeLog {
  readonly #keepMs: number
  readonly #entriesMax: number
  readonly #bytesMax: number
  #floor: Revision
  #versions: Version[] = []
  #head = 0
  #entries = 0
  #bytes = 0
  #ageGroups: AgeGroup[] = []

  constructor({ keepMs, entriesMax, bytesMax, floor }: ChangeLogOptions) {
    this.#keepMs = keepMs
    this.#entriesMax = entriesMax
    this.#bytesMax = bytesMax
    this.#floor = floor
  }

  /** The oldest revision that can be read or watched from; earlier ones are compacted. */
  get floor(): Revision {
    return this.#floor
  }

  /** The number of superseded versions and tombstones that are retained. */
  get entries(): number {
    return this.#entries
  }

  /** The bytes of the values of the retained superseded versions. */
  get bytes(): number {
    return this.#bytes
  }

  get length(): number {
    return this.#versions.length - this.#head
  }

  append(version: Version, nowMs: number): void {
    this.#versions.push(version)
    this.#entries += countDrops(version)
    this.#bytes += bytesOfDrop(version)
    const group = this.#ageGroups.at(-1)
    if (group && nowMs - group.sinceMs <= this.#keepMs / AGE_GROUPS_PER_KEEP) {
      group.atMs = nowMs
      group.revision = version.revision
    } else {
      this.#ageGroups.push({ sinceMs: nowMs, atMs: nowMs, revision: version.revision })
    }
  }

  /** Retires old changes up to `revisionMax` and returns the versions whose records can be deleted. */
  compact({ nowMs, revisionMax, dropsMax }: { nowMs: number; revisionMax: Revision; dropsMax: number }): Version[] {
    const droppedVersions: Version[] = []
    const agedRevision = this.#agedRevision(nowMs)
    while (droppedVersions.length < dropsMax) {
      const version = this.#versions[this.#head]
      if (!version || version.revision > revisionMax) break
      if (version.revision > agedRevision && !this.#isOverfull()) break
      this.#retire(version, droppedVersions)
    }
    if (this.#head > 1_024 && this.#head > this.#versions.length / 2) {
      this.#versions = this.#versions.slice(this.#head)
      this.#head = 0
    }
    const oldestVersion = this.#versions[this.#head]
    while (this.#ageGroups[0] && (!oldestVersion || this.#ageGroups[0].revision < oldestVersion.revision))
      this.#ageGroups.shift()
    return droppedVersions
  }

  /** Returns the time at which the oldest change can be retired, or undefined if the log is empty. */
  dueAtMs(): number | undefined {
    if (this.length === 0) return undefined
    if (this.#isOverfull()) return Number.NEGATIVE_INFINITY
    return (this.#ageGroups[0] as AgeGroup).atMs + this.#keepMs
  }

  /** Returns the position of the first retained change after a revision. It is valid until the next compact(). */
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

  versionAt(position: number): Version | undefined {
    return this.#versions[position]
  }

  #isOverfull(): boolean {
    return (
      this.#entries > this.#entriesMax ||
      this.#bytes > this.#bytesMax ||
      this.length > this.#entriesMax * CHANGES_PER_ENTRY_MAX
    )
  }

  #agedRevision(nowMs: number): Revision {
    let revision = 0
    for (const group of this.#ageGroups) {
      if (group.atMs + this.#keepMs > nowMs) break
      revision = group.revision
    }
    return revision
  }

  #retire(version: Version, droppedVersions: Version[]): void {
    this.#entries -= countDrops(version)
    this.#bytes -= bytesOfDrop(version)
    const supersededVersion = versionBefore(version)
    if (supersededVersion) droppedVersions.push(supersededVersion)
    if (version.isDeleted) droppedVersions.push(version)
    version.previous = undefined
    this.#head++
    if (version.revision > this.#floor) this.#floor = version.revision
  }
}

function countDrops(version: Version): number {
  return (versionBefore(version) ? 1 : 0) + (version.isDeleted ? 1 : 0)
}

function bytesOfDrop(version: Version): number {
  return versionBefore(version)?.valueBytes ?? 0
}
