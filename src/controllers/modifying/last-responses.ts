// Stores the driver's last response to ControllerModifyVolume for each claim. The responses are not persisted: after a restart
// a modification in progress has no final response, and a rejected one is retried once.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

/** If there are more claims, the least recently used response is dropped. */
const RESPONSES_MAX = 100_000

interface LastResponse {
  readonly isFinal: boolean
  /** The rejected call, and the time until which it must not be repeated. */
  readonly rejectedCall?: { readonly fingerprint: string; readonly untilMs: number }
  /** Whether the driver rejected a call because the volume was in use. */
  readonly requiresOffline?: true
  /** The last reported reason for not calling the driver. */
  readonly reportedMessage?: string
}

export class LastResponses {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #byUid = new LruCache<string, LastResponse>(RESPONSES_MAX)

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  hasFinalResponse(claim: Claim): boolean {
    return this.#responseOf(claim).isFinal
  }

  /** Returns the fingerprint of the call that must not be repeated yet. */
  rejectedCallOf(claim: Claim): string | undefined {
    const { rejectedCall } = this.#responseOf(claim)
    return rejectedCall && rejectedCall.untilMs > this.#clock.monotonicMs() ? rejectedCall.fingerprint : undefined
  }

  retryDelayMs(claim: Claim): number {
    return Math.max(0, (this.#responseOf(claim).rejectedCall?.untilMs ?? 0) - this.#clock.monotonicMs())
  }

  requiresOffline(claim: Claim): boolean {
    return this.#responseOf(claim).requiresOffline ?? false
  }

  reportedMessageOf(claim: Claim): string | undefined {
    return this.#responseOf(claim).reportedMessage
  }

  recordReportedMessage(claim: Claim, reportedMessage: string): void {
    this.#set(claim, { ...this.#responseOf(claim), reportedMessage })
  }

  /** Records that no call is in progress: the driver responded or the modification was dropped. */
  recordFinalResponse(claim: Claim): void {
    this.#set(claim, { isFinal: true })
  }

  recordRejection(claim: Claim, fingerprint: string, retryDelayMs: number): void {
    this.#set(claim, {
      isFinal: true,
      rejectedCall: { fingerprint, untilMs: this.#clock.monotonicMs() + retryDelayMs },
    })
  }

  /** Allows the rejected call to be repeated now. */
  endRejection(claim: Claim): void {
    const { rejectedCall, ...response } = this.#responseOf(claim)
    if (rejectedCall) this.#set(claim, response)
  }

  recordInUseRejection(claim: Claim): void {
    this.#set(claim, { isFinal: true, requiresOffline: true })
  }

  /** Records that the driver was called and may still be modifying the volume. */
  recordUncertainCall(claim: Claim): void {
    this.#set(claim, { isFinal: false })
  }

  #responseOf({ metadata }: Claim): LastResponse {
    return this.#byUid.get(metadata.uid) ?? NO_RESPONSE
  }

  #set({ metadata }: Claim, response: LastResponse): void {
    this.#byUid.set(metadata.uid, response)
  }
}

const NO_RESPONSE: LastResponse = { isFinal: false }
