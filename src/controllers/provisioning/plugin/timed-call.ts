// Calls functions of a plugin with a timeout. The timeout aborts the signal of the call, but the call is still awaited:
// two calls for one volume never run concurrently. All errors are converted to CallError.
import type { Clock } from '../../../base/clock.ts'
import type { OverdueCallback } from '../provisioner.ts'
import type { Call } from './contract.ts'
import { type FailureKind, failureKindOf } from './failures.ts'
import { errorMessageOf } from './message-text.ts'

export interface TimedCallerOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Name of the plugin for messages. */
  readonly name: string
}

export interface CallOptions {
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal
  readonly onOverdue?: OverdueCallback | undefined
}

/** An error that a plugin threw, with its message for events and its classification. */
export class CallError extends Error {
  override readonly name = 'CallError'
  readonly kind: FailureKind

  constructor(message: string, kind: FailureKind) {
    super(message)
    this.kind = kind
  }
}

/** A call that has not returned this long after its signal was aborted is reported. */
const STOP_GRACE_MS = 1_000
/** Interval at which an overdue call is reported again, because events expire after an hour. */
const REMINDER_INTERVAL_MS = 600_000

/** Returns a function that runs calls with a signal, which the caller's signal and the timeout abort. */
export function createTimedCaller({ clock, timeoutMs, name }: TimedCallerOptions) {
  const timeoutMessage = `${name} did not finish within the timeout of ${timeoutMs / 1_000} s`

  return async <T>({ signal, onOverdue }: CallOptions, invoke: (call: Call) => Promise<T>): Promise<T> => {
    // An aborted signal does not call listeners that are added now.
    if (signal.aborted) throw new CallError(`${name} was not called: ${errorMessageOf(signal.reason)}.`, 'noChange')
    const call = new AbortController()
    const timeout = new Error(`${timeoutMessage}.`)
    const abortCall = () => call.abort(signal.reason)
    signal.addEventListener('abort', abortCall, { once: true })
    const reportOverdue = () => {
      onOverdue?.(
        `${timeoutMessage} and did not stop when its signal was aborted. The call is awaited and not repeated before it returns; ` +
          'if it never returns, restart the provisioner.',
      )
      cancelTimer = clock.after(REMINDER_INTERVAL_MS, reportOverdue)
    }
    let cancelTimer = clock.after(timeoutMs, () => {
      call.abort(timeout)
      cancelTimer = clock.after(STOP_GRACE_MS, reportOverdue)
    })
    try {
      return await invoke({ signal: call.signal })
    } catch (error) {
      const isTimeout = call.signal.reason === timeout
      const message = errorMessageOf(error)
      if (!isTimeout || error === timeout) throw new CallError(message, failureKindOf(error))
      throw new CallError(`${timeoutMessage}: ${message}`, failureKindOf(error))
    } finally {
      cancelTimer()
      signal.removeEventListener('abort', abortCall)
    }
  }
}
