// Records the calls to the fake driver, and pairs of concurrent calls for one volume. The record contains the keys of secrets,
// but not their values.
import type { DescMethod, JsonValue, Message } from '@bufbuild/protobuf'
import type { CsiCode } from '../errors.ts'
import { redact } from '../redact.ts'

export interface FakeCall {
  /** The position of the call, starting with 1. */
  readonly number: number
  /** The method's name, such as `CreateVolume`. */
  readonly method: string
  /** The name of the volume or snapshot, or its id if the name is unknown. */
  readonly volume: string | undefined
  readonly request: JsonValue
  readonly secretKeys: readonly string[]
  readonly startedMs: number
  endedMs?: number
  /** Undefined while the call runs, and if the driver crashed during the call. */
  outcome?: CsiCode
}

export interface Overlap {
  readonly volume: string
  readonly first: FakeCall
  readonly second: FakeCall
}

interface CallHandle {
  readonly call: FakeCall
  /** Whether the driver is working on another call for the same volume, even if its caller has cancelled it. */
  readonly isBusy: boolean
  /** Called when the handler has run. The response may still be pending. */
  markHandled(): void
  end(outcome: CsiCode, nowMs: number): void
}

export interface FakeRecord {
  /** The last CALLS_MAX calls, oldest first. */
  readonly calls: FakeCall[]
  readonly overlaps: Overlap[]
  begin(call: {
    readonly method: DescMethod
    readonly request: Message
    readonly volume: string | undefined
    /** Calls with the same lock must not overlap. */
    readonly lock: string | undefined
    readonly signal: AbortSignal
    readonly nowMs: number
  }): CallHandle
  /** Called when the driver crashes, which ends its calls. */
  endAllCalls(): void
}

const CALLS_MAX = 100_000 // older calls are dropped
const OVERLAPS_MAX = 1_000 // further overlaps are not recorded

interface OpenCall {
  readonly call: FakeCall
  readonly lock: string
  readonly signal: AbortSignal
  isWorking: boolean
}

export function createRecord(): FakeRecord {
  const calls: FakeCall[] = []
  const overlaps: Overlap[] = []
  const openCalls = new Set<OpenCall>()
  let number = 0

  return {
    calls,
    overlaps,
    begin({ method, request, volume, lock, signal, nowMs }) {
      const secrets = (request as unknown as { secrets?: Record<string, string> }).secrets ?? {}
      const call: FakeCall = {
        number: ++number,
        method: method.name,
        volume,
        request: redact(method.input, request),
        secretKeys: Object.keys(secrets),
        startedMs: nowMs,
      }
      calls.push(call)
      if (calls.length > CALLS_MAX) calls.splice(0, calls.length - CALLS_MAX)

      const overlappingCalls = lock === undefined ? [] : [...openCalls].filter((candidate) => candidate.lock === lock)
      for (const earlierCall of overlappingCalls) {
        // After a cancelled call, the caller may call again, because it cannot know whether the driver is still working.
        if (signal.aborted || earlierCall.signal.aborted || overlaps.length >= OVERLAPS_MAX) continue
        overlaps.push({ volume: volume ?? '', first: earlierCall.call, second: call })
      }
      const openCall: OpenCall | undefined = lock === undefined ? undefined : { call, lock, signal, isWorking: true }
      if (openCall) openCalls.add(openCall)
      return {
        call,
        isBusy: overlappingCalls.some(({ isWorking }) => isWorking),
        markHandled() {
          if (openCall) openCall.isWorking = false
        },
        end(outcome, endedMs) {
          if (call.outcome) return
          call.outcome = outcome
          call.endedMs = endedMs
          if (openCall) openCalls.delete(openCall)
        },
      }
    },
    endAllCalls: () => openCalls.clear(),
  }
}
