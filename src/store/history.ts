// History: the change logs of a store, one for ordinary keys and one for the `brief` prefixes of HistoryOptions, so that
// each has its own floor.
import { ChangeLog } from './change-log.ts'
import type { Floors } from './medium.ts'
import type { HistoryOptions, Revision } from './store.ts'
import type { Version } from './version.ts'

const KEEP_MS = 5 * 60_000
const ENTRIES_MAX = 100_000
const BYTES_MAX = 64 * 1024 * 1024

export class History {
  readonly #briefPrefixes: readonly string[]
  readonly #ordinary: ChangeLog
  readonly #brief: ChangeLog

  /** `floors` are the floors that were last stored on the medium. */
  constructor(options: HistoryOptions, floors: Floors) {
    const { keepMs = KEEP_MS, entriesMax = ENTRIES_MAX, bytesMax = BYTES_MAX, brief } = options
    this.#briefPrefixes = brief?.prefixes ?? []
    // If the brief prefixes have changed, keys may have moved between the logs, so only the higher floor is valid for all.
    const isSameSplit = this.#briefPrefixes.join('\n') === floors.briefPrefixes.join('\n')
    const higherFloor = Math.max(floors.ordinary, floors.brief)
    this.#ordinary = new ChangeLog({ keepMs, entriesMax, bytesMax, floor: isSameSplit ? floors.ordinary : higherFloor })
    this.#brief = new ChangeLog({
      keepMs: brief?.keepMs ?? keepMs,
      entriesMax: brief?.entriesMax ?? entriesMax,
      bytesMax: brief?.bytesMax ?? bytesMax,
      floor: isSameSplit ? floors.brief : higherFloor,
    })
  }

  get floors(): Floors {
    return { ordinary: this.#ordinary.floor, brief: this.#brief.floor, briefPrefixes: this.#briefPrefixes }
  }

  get entries(): number {
    return this.#ordinary.entries + this.#brief.entries
  }

  get bytes(): number {
    return this.#ordinary.bytes + this.#brief.bytes
  }

  append(version: Version, nowMs: number): void {
    this.#logOf(version.key).append(version, nowMs)
  }

  /** Adds a version read from the medium. Skips one at or below the floor that supersedes no version and is not a tombstone. */
  restore(version: Version, nowMs: number): void {
    const log = this.#logOf(version.key)
    if (version.revision > log.floor || version.previous || version.isDeleted) log.append(version, nowMs)
  }

  /** Returns the oldest revision at which keys under this prefix can be listed and watched. */
  floorOf(prefix: string): Revision {
    return Math.max(...this.logsFor(prefix).map((log) => log.floor))
  }

  logsFor(prefix: string): readonly ChangeLog[] {
    if (this.#isBrief(prefix)) return [this.#brief]
    const includesBrief = this.#briefPrefixes.some((brief) => brief.startsWith(prefix))
    return includesBrief ? [this.#ordinary, this.#brief] : [this.#ordinary]
  }

  compact(limits: { nowMs: number; revisionMax: Revision; dropsMax: number }): Version[] {
    return [...this.#ordinary.compact(limits), ...this.#brief.compact(limits)]
  }

  /** Returns the time at which compact() can next retire a change, or undefined if the logs are empty. */
  dueAtMs(): number | undefined {
    const dueTimes = [this.#ordinary.dueAtMs(), this.#brief.dueAtMs()].filter((ms) => ms !== undefined)
    return dueTimes.length > 0 ? Math.min(...dueTimes) : undefined
  }

  #logOf(key: string): ChangeLog {
    return this.#isBrief(key) ? this.#brief : this.#ordinary
  }

  #isBrief(keyOrPrefix: string): boolean {
    return this.#briefPrefixes.some((prefix) => keyOrPrefix.startsWith(prefix))
  }
}
