// Remembers the driver's last response to ControllerModifyVolume for each claim. In memory only: after a restart a
// modification in progress counts as not answered, and a rejected one is tried once more.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

/** Beyond this many claims, the least recently used response is forgotten. */
const RESPONSES_MAX = 100_000

interface LastResponse {
  readonly isFinal: boolean
  /** The rejected call (fingerprintOf), and until when it is not repeated. */
  readonly rejected?: { readonly what: string; readonly untilMs: number }
  /** The driver rejected a call because the volume was in use. */
  readonly requiresOffline?: true
  /** The last reported reason for not calling the driver. */
  readonly reported?: string
}

export class LastResponses {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #byUid = new LruCache<string, LastResponse>(RESPONSES_MAX)

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  isAnswered(claim: Claim): boolean {
    return this.#of(claim).isFinal
  }

  /** The call that must not be repeated yet. */
  rejectedOf(claim: Claim): string | undefined {
    const { rejected } = this.#of(claim)
    return rejected && rejected.untilMs > this.#clock.monotonicMs() ? rejected.what : undefined
  }

  retryDelayMs(claim: Claim): number {
    return Math.max(0, (this.#of(claim).rejected?.untilMs ?? 0) - this.#clock.monotonicMs())
  }

  requiresOffline(claim: Claim): boolean {
    return this.#of(claim).requiresOffline ?? false
  }

  reported(claim: Claim): string | undefined {
    return this.#of(claim).reported
  }

  report(claim: Claim, reported: string): void {
    this.#set(claim, { ...this.#of(claim), reported })
  }

  /** The driver responded, or the modification was dropped: no call is in progress. */
  final(claim: Claim): void {
    this.#set(claim, { isFinal: true })
  }

  reject(claim: Claim, what: string, retryDelayMs: number): void {
    this.#set(claim, { isFinal: true, rejected: { what, untilMs: this.#clock.monotonicMs() + retryDelayMs } })
  }

  rejectInUse(claim: Claim): void {
    this.#set(claim, { isFinal: true, requiresOffline: true })
  }

  /** The driver was called and may still be modifying the volume. */
  uncertain(claim: Claim): void {
    this.#set(claim, { isFinal: false })
  }

  #of({ metadata }: Claim): LastResponse {
    return this.#byUid.get(metadata.uid) ?? NONE
  }

  #set({ metadata }: Claim, response: LastResponse): void {
    this.#byUid.set(metadata.uid, response)
  }
}

const NONE: LastResponse = { isFinal: false }
