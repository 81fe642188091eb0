// The two change logs of a store, ordinary and brief, and what is asked of both: which of them a key or prefix
// belongs to, how far back it reaches, and what may be dropped next. How one log works is in change-log.ts.
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

  /** `floors` as they were written last. */
  constructor({ keepMs = KEEP_MS, entriesMax = ENTRIES_MAX, brief }: HistoryOptions, floors: Floors) {
    this.#briefPrefixes = brief?.prefixes ?? []
    // A key may have changed its class since: then only what both floors promise can be promised to it.
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

  /** For a version found on the medium: it is part of history unless it is just the state a key has long had. */
  restore(version: Version, nowMs: number): void {
    const log = this.#logOf(version.key)
    if (version.revision > log.floor || version.previous || version.deleted) log.append(version, nowMs)
  }

  /** From which revision on keys under this prefix can be listed and watched. */
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

  /** When compact() will have something to do, if nothing else changes. */
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
