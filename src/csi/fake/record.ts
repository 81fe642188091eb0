// Everything a fake driver was asked, and whether two calls about one volume ever ran at once while someone waited for
// both. It outlives the driver's own restarts, and can convict whoever called. Of secrets it keeps the keys.
import type { DescMethod, JsonValue, Message } from '@bufbuild/protobuf'
import type { CsiCode } from '../errors.ts'
import { redact } from '../redact.ts'

export interface FakeCall {
  /** Counted from 1. */
  readonly number: number
  /** `CreateVolume` */
  readonly method: string
  /** The name of the volume it is about, or its id where that is not known. */
  readonly volume: string | undefined
  readonly request: JsonValue
  readonly secretsGiven: readonly string[]
  readonly startedMs: number
  endedMs?: number
  /** Undefined while it runs. */
  outcome?: CsiCode
}

export interface Overlap {
  readonly volume: string
  readonly first: FakeCall
  readonly second: FakeCall
}

export interface CallHandle {
  readonly call: FakeCall
  /** Whether another call about the same volume is still at work, awaited or not. */
  readonly isBusy: boolean
  /** The work is done, though the reply may still be out. */
  workDone(): void
  end(outcome: CsiCode, nowMs: number): void
}

export interface FakeRecord {
  /** The last CALLS_MAX, oldest first. */
  readonly calls: FakeCall[]
  readonly overlaps: Overlap[]
  begin(call: {
    readonly method: DescMethod
    readonly request: Message
    readonly volume: string | undefined
    /** Calls with one lock must not overlap. */
    readonly lock: string | undefined
    readonly signal: AbortSignal
    readonly nowMs: number
  }): CallHandle
  /** The driver died: whatever it was doing is over, and its callers know. */
  crashed(): void
}

const CALLS_MAX = 100_000 // older ones are forgotten
const OVERLAPS_MAX = 1_000 // one is too many already

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
        // Whoever gave up waiting may ask again: only the driver knows that it is still at work.
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
