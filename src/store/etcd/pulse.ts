// Whether etcd is well, for those who ask often: it is looked at now and then, however many ask, and one that does not
// answer is not waited for.
import type { Clock } from '../../base/clock.ts'

/** As long as API servers give etcd for it. */
const ANSWER_MS_MAX = 2_000
/** How old an answer may be. */
const AGE_MS_MAX = 1_000

export interface PulseOptions {
  readonly clock: Clock
  /** What is wrong, if anything is. Rejects: it cannot be told. */
  look(): Promise<string | undefined>
  /** What is wrong with one that cannot be told, or does not answer in time. */
  readonly silence: string
}

export function createPulse({ clock, look, silence }: PulseOptions): () => Promise<string | undefined> {
  let latest: { readonly answer: Promise<string | undefined>; endedMs: number } | undefined
  return () => {
    if (latest && clock.monotonicMs() - latest.endedMs < AGE_MS_MAX) return latest.answer
    const own = { answer: lookInTime(), endedMs: Number.POSITIVE_INFINITY } // until then all wait for the same
    latest = own
    return own.answer.finally(() => {
      own.endedMs = clock.monotonicMs()
    })
  }

  function lookInTime(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const cancel = clock.after(ANSWER_MS_MAX, () => resolve(silence))
      look()
        .catch(() => silence)
        .then((problem) => {
          cancel()
          resolve(problem)
        })
    })
  }
}
