// CommitPace decides from the durations of recent commits whether the next one may run in the thread of the event loop. That
// saves the time to wake another thread and to be woken by it, but nothing else runs until the disk has synced, so:
//   fast commits     the event loop waits at most FAST_MS at a time; more than a few longer commits end this
//   a stall          no disk announces one, so the event loop can wait for it once; stalls block at most 5 % of the time
import type { Clock } from '../base/clock.ts'

export const FAST_MS = 2 // a commit of at most this duration is fast
const COMMITS = 32 // the recent commits that count
const SLOW_COMMITS_MAX = 8 // of the recent ones; beyond this, commits run in another thread
export const STALL_MS = 25 // after a commit of at least this duration, commits run in another thread for a while:
export const PAUSE_FACTOR = 20 // for this many times its duration

export class CommitPace {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** One bit per recent commit, set if it was slow. */
  #slowCommits = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Records the duration of a commit in any thread. */
  record(ms: number): void {
    this.#slowCommits = (this.#slowCommits << 1) | (ms > FAST_MS ? 1 : 0)
    if (ms >= STALL_MS) this.#pausedUntilMs = this.#clock.monotonicMs() + PAUSE_FACTOR * ms
  }

  /** Whether the next commit may run in the thread of the event loop. */
  get isFast(): boolean {
    return bitCount(this.#slowCommits) <= SLOW_COMMITS_MAX && this.#clock.monotonicMs() >= this.#pausedUntilMs
  }
}

/** Returns the number of bits that are set in a number of COMMITS bits. */
function bitCount(bits: number): number {
  let count = 0
  for (let bit = 0; bit < COMMITS; bit++) count += (bits >>> bit) & 1
  return count
}
