// Scrub: reads all records in the background, in slices and pass after pass, to find damage before a request does. The first
// pass after the start is fast; later passes run at the configured rate.
import type { Clock } from '../base/clock.ts'
import type { VerifiedSlice, VerifyOptions } from './medium.ts'
import type { Revision, ScrubStats } from './store.ts'

const SLICE_BYTES = 256 * 1024
const SLICE_RECORDS_MAX = 500
const FIRST_PASS_BYTES_PER_SECOND = 64 * 2 ** 20
const PAUSE_MS_MIN = 1
const PASS_PAUSE_MS = 60_000 // between two passes, so that a small store is not read continuously

export interface ScrubOptions {
  readonly clock: Clock
  /** The rate of all passes but the first, which is at least as fast. */
  readonly bytesPerSecond: number
  verify(options: VerifyOptions): VerifiedSlice
  report(damage: VerifiedSlice['damagedRecords'][number]): void
  reportRange(range: VerifiedSlice['damagedRanges'][number]): void
  /** The store's newest revision. */
  revision(): Revision
}

export class Scrub {
  readonly #options: ScrubOptions
  #position: Revision = 0
  #passes = 0
  #bytes = 0
  #cancel: () => void

  /** Starts the first pass. */
  constructor(options: ScrubOptions) {
    this.#options = options
    this.#cancel = options.clock.after(PAUSE_MS_MIN, () => this.#readSlice())
  }

  stats(): ScrubStats {
    const newestRevision = this.#options.revision()
    return {
      passes: this.#passes,
      bytes: this.#bytes,
      progress: newestRevision === 0 ? 1 : this.#position / newestRevision,
    }
  }

  stop(): void {
    this.#cancel()
  }

  #readSlice(): void {
    const { clock, verify, report, reportRange } = this.#options
    const slice = verify({ afterRevision: this.#position, recordsMax: SLICE_RECORDS_MAX, bytesMax: SLICE_BYTES })
    for (const damage of slice.damagedRecords) report(damage)
    for (const range of slice.damagedRanges) reportRange(range)
    this.#bytes += slice.bytes
    const isEnd = slice.lastRevision === undefined
    const pauseMs = isEnd ? PASS_PAUSE_MS : Math.max(PAUSE_MS_MIN, (slice.bytes / this.#bytesPerSecond()) * 1_000)
    if (isEnd) this.#passes++
    this.#position = slice.lastRevision ?? 0
    this.#cancel = clock.after(pauseMs, () => this.#readSlice())
  }

  #bytesPerSecond(): number {
    const { bytesPerSecond } = this.#options
    return this.#passes === 0 ? Math.max(FIRST_PASS_BYTES_PER_SECOND, bytesPerSecond) : bytesPerSecond
  }
}
