// CommitPace decides from the durations of recent commits whether the next one may run in the thread of the event loop. That
// saves the time to wake another thread and to be woken by it, but nothing else runs until the disk has synced. So after a
// commit in that thread that was a stall, or slow like several of the recent ones, the next ones run in another thread for
// PAUSE_FACTOR times its duration: a slow disk blocks the event loop for at most 5 % of the time.
//
// Commits in another thread do not count: on a busy machine, their durations are those of its scheduler.
import type { Clock } from '../base/clock.ts'

export const SLOW_MS = 2 // a commit that takes longer is slow
const COMMITS = 32 // the recent commits that count
const SLOW_COMMITS_MAX = 8 // of the recent ones
export const STALL_MS = 25 // a single commit of this duration is a stall
export const PAUSE_FACTOR = 20

export class CommitPace {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** One bit per recent commit, set if it was slow. */
  #slowCommits = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Whether the next commit may run in the thread of the event loop. */
  get mayBlock(): boolean {
    return this.#clock.monotonicMs() >= this.#pausedUntilMs
  }

  /** Records the duration of a commit in the thread of the event loop. */
  record(ms: number): void {
    const isSlow = ms > SLOW_MS
    this.#slowCommits = (this.#slowCommits << 1) | (isSlow ? 1 : 0)
    if (ms >= STALL_MS || (isSlow && bitCount(this.#slowCommits) > SLOW_COMMITS_MAX))
      this.#pausedUntilMs = this.#clock.monotonicMs() + PAUSE_FACTOR * ms
  }
}

/** Returns how many of the COMMITS bits of a number are set. */
function bitCount(bits: number): number {
  let count = 0
  for (let bit = 0; bit < COMMITS; bit++) count += (bits >>> bit) & 1
  return count
}
