// Records every call of the fake driver, and pairs of concurrent calls on one volume, which the CSI specification forbids
// callers. The record survives restarts of the fake driver. Of secrets it contains only the keys.
import type { DescMethod, JsonValue, Message } from '@bufbuild/protobuf'
import type { CsiCode } from '../errors.ts'
import { redact } from '../redact.ts'

export interface FakeCall {
  /** Counts from 1. */
  readonly number: number
  /** `CreateVolume` */
  readonly method: string
  /** The name of the volume, or its id if the name is unknown. */
  readonly volume: string | undefined
  readonly request: JsonValue
  readonly secretsGiven: readonly string[]
  readonly startedMs: number
  endedMs?: number
  /** Undefined while the call runs. */
  outcome?: CsiCode
}

export interface Overlap {
  readonly volume: string
  readonly first: FakeCall
  readonly second: FakeCall
}

export interface CallHandle {
  readonly call: FakeCall
  /** Whether the driver is still working on another call for the same volume, even one that its caller has cancelled. */
  readonly isBusy: boolean
  /** The handler has run; the response may still be pending. */
  workDone(): void
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
  /** The driver crashed: its calls have ended. */
  crashed(): void
}

const CALLS_MAX = 100_000 // older calls are dropped
const OVERLAPS_MAX = 1_000 // further overlaps are not recorded

interface Open {
  readonly call: FakeCall
  readonly lock: string
  readonly signal: AbortSignal
  isWorking: boolean
}

export function createRecord(): FakeRecord {
  const calls: FakeCall[] = []
  const overlaps: Overlap[] = []
  const open = new Set<Open>()
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
        secretsGiven: Object.keys(secrets),
        startedMs: nowMs,
      }
      calls.push(call)
      if (calls.length > CALLS_MAX) calls.splice(0, calls.length - CALLS_MAX)

      const others = lock === undefined ? [] : [...open].filter((other) => other.lock === lock)
      for (const other of others) {
        // After a cancelled call the caller may call again: it cannot know that the driver is still working.
        if (signal.aborted || other.signal.aborted || overlaps.length >= OVERLAPS_MAX) continue
        overlaps.push({ volume: volume ?? '', first: other.call, second: call })
      }
      const own: Open | undefined = lock === undefined ? undefined : { call, lock, signal, isWorking: true }
      if (own) open.add(own)
      return {
        call,
        isBusy: others.some(({ isWorking }) => isWorking),
        workDone() {
          if (own) own.isWorking = false
        },
        end(outcome, endedMs) {
          if (call.outcome) return
          call.outcome = outcome
          call.endedMs = endedMs
          if (own) open.delete(own)
        },
      }
    },
    crashed: () => open.clear(),
  }
}
