// What this process knows of the driver's last answers about each claim. All of it may be lost at any moment: then a
// change that was begun counts as not answered, and one that was refused is tried once more.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'

type Claim = Readonly<PersistentVolumeClaim>

/** Beyond this many claims with a change under way, the one looked at longest ago is forgotten. */
const REMEMBERED_MAX = 100_000

interface Answer {
  readonly isFinal: boolean
  /** What was refused, and until when it is not asked again. */
  readonly refused?: { readonly what: string; readonly untilMs: number }
  /** It said that the volume must not be in use. */
  readonly isOffline?: true
  /** What people were told about why nothing is asked. */
  readonly told?: string
}

export class Answers {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #byUid = new LruCache<string, Answer>(REMEMBERED_MAX)

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  isAnswered(claim: Claim): boolean {
    return this.#of(claim).isFinal
  }

  /** What must not be asked again yet. */
  restingOf(claim: Claim): string | undefined {
    const { refused } = this.#of(claim)
    return refused && refused.untilMs > this.#clock.monotonicMs() ? refused.what : undefined
  }

  restMs(claim: Claim): number {
    return Math.max(0, (this.#of(claim).refused?.untilMs ?? 0) - this.#clock.monotonicMs())
  }

  isOffline(claim: Claim): boolean {
    return this.#of(claim).isOffline ?? false
  }

  told(claim: Claim): string | undefined {
    return this.#of(claim).told
  }

  tell(claim: Claim, told: string): void {
    this.#set(claim, { ...this.#of(claim), told })
  }

  /** The driver said no, or the change was given up: it is at nothing. */
  final(claim: Claim): void {
    this.#set(claim, { isFinal: true })
  }

  refuse(claim: Claim, what: string, restMs: number): void {
    this.#set(claim, { isFinal: true, refused: { what, untilMs: this.#clock.monotonicMs() + restMs } })
  }

  refuseInUse(claim: Claim): void {
    this.#set(claim, { isFinal: true, isOffline: true })
  }

  /** The driver was asked, and may be at it. */
  uncertain(claim: Claim): void {
    this.#set(claim, { isFinal: false })
  }

  #of({ metadata }: Claim): Answer {
    return this.#byUid.get(metadata.uid ?? '') ?? NOTHING
  }

  #set({ metadata }: Claim, answer: Answer): void {
    this.#byUid.set(metadata.uid ?? '', answer)
  }
}

const NOTHING: Answer = { isFinal: false }
