// History: the change logs of a store, one for ordinary keys and one for `brief` prefixes (HistoryOptions).
// Maps a key or prefix to its logs, its floor, and the versions to compact next. A single log is change-log.ts.
import { ChangeLog } from './change-log.ts'
import type { Floors } from './medium.ts'
import type { HistoryOptions, Revision } from './store.ts'
import type { Version } from './version.ts'

const KEEP_MS = 5 * 60_000
const ENTRIES_MAX = 100_000

export class History {
  readonly #briefPrefixes: readonly string[]
  readonly #ordinary: ChangeLog
  readonly #brief: ChangeLog

  /** `floors`: as the medium last stored them. */
  constructor({ keepMs = KEEP_MS, entriesMax = ENTRIES_MAX, brief }: HistoryOptions, floors: Floors) {
    this.#briefPrefixes = brief?.prefixes ?? []
    // If the brief prefixes have changed, keys may have moved between the logs: only the higher floor holds for all.
    const isSameSplit = this.#briefPrefixes.join('\n') === floors.briefPrefixes.join('\n')
    const both = Math.max(floors.ordinary, floors.brief)
    this.#ordinary = new ChangeLog({ keepMs, entriesMax, floor: isSameSplit ? floors.ordinary : both })
    this.#brief = new ChangeLog({
      keepMs: brief?.keepMs ?? keepMs,
      entriesMax: brief?.entriesMax ?? entriesMax,
      floor: isSameSplit ? floors.brief : both,
    })
  }

  get floors(): Floors {
    return { ordinary: this.#ordinary.floor, brief: this.#brief.floor, briefPrefixes: this.#briefPrefixes }
  }

  get entries(): number {
    return this.#ordinary.entries + this.#brief.entries
  }

  append(version: Version, nowMs: number): void {
    this.#logOf(version.key).append(version, nowMs)
  }

  /** Adds a version read from the medium, unless it is the only kept version of its key and at or below the floor. */
  restore(version: Version, nowMs: number): void {
    const log = this.#logOf(version.key)
    if (version.revision > log.floor || version.previous || version.deleted) log.append(version, nowMs)
  }

  /** The oldest revision at which keys under this prefix can be listed and watched. */
  floorOf(prefix: string): Revision {
    return Math.max(...this.logsFor(prefix).map((log) => log.floor))
  }

  logsFor(prefix: string): readonly ChangeLog[] {
    if (this.#isBrief(prefix)) return [this.#brief]
    const reachesIntoBrief = this.#briefPrefixes.some((brief) => brief.startsWith(prefix))
    return reachesIntoBrief ? [this.#ordinary, this.#brief] : [this.#ordinary]
  }

  compact(limits: { nowMs: number; revisionMax: Revision; dropsMax: number }): Version[] {
    return [...this.#ordinary.compact(limits), ...this.#brief.compact(limits)]
  }

  /** When compact() will next have work, if nothing is appended; undefined if the logs are empty. */
  dueAtMs(): number | undefined {
    const due = [this.#ordinary.dueAtMs(), this.#brief.dueAtMs()].filter((ms) => ms !== undefined)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  #logOf(key: string): ChangeLog {
    return this.#isBrief(key) ? this.#brief : this.#ordinary
  }

  #isBrief(keyOrPrefix: string): boolean {
    return this.#briefPrefixes.some((prefix) => keyOrPrefix.startsWith(prefix))
  }
}
