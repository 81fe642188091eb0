// Calls a function of a plugin with a time limit: the signal fires at the limit, but the call is still awaited, so that no
// two calls for one volume run at once. Everything thrown becomes a CallFailed.
import type { Clock } from '../../../base/clock.ts'
import type { Overdue } from '../provisioner.ts'
import type { Call } from './contract.ts'
import { type Meaning, meaningOf } from './failures.ts'
import { thrownText } from './wording.ts'

export interface TimedCalls {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Of the plugin, for messages. */
  readonly name: string
}

export interface Wait {
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal
  readonly onOverdue?: Overdue | undefined
}

/** An error that a plugin threw: its message for events, and its classification. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly meaning: Meaning

  constructor(text: string, meaning: Meaning) {
    super(text)
    this.meaning = meaning
  }
}

/** Time for a call to end after its signal was aborted, before it is reported. */
const STOP_GRACE_MS = 1_000
/** A call that continues is reported repeatedly, because events expire after an hour. */
const REMIND_MS = 600_000

/** Runs calls with a signal that is aborted with the caller's, or at the time limit. */
export function timedCalls({ clock, timeoutMs, name }: TimedCalls) {
  const lateText = `${name} did not finish within the timeout of ${timeoutMs / 1_000} s`

  return async <T>({ signal, onOverdue }: Wait, run: (call: Call) => Promise<T>): Promise<T> => {
    // A listener added now would never be called.
    if (signal.aborted) throw new CallFailed(`${name} was not called: ${thrownText(signal.reason)}.`, 'noChange')
    const call = new AbortController()
    const timeout = new Error(`${lateText}.`)
    const stop = () => call.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    const remind = () => {
      onOverdue?.(
        `${lateText} and did not stop when its signal was aborted. The call is awaited, and not repeated before it ends; ` +
          'if it never ends, restart the provisioner.',
      )
      cancelTimer = clock.after(REMIND_MS, remind)
    }
    let cancelTimer = clock.after(timeoutMs, () => {
      call.abort(timeout)
      cancelTimer = clock.after(STOP_GRACE_MS, remind)
    })
    try {
      return await run({ signal: call.signal })
    } catch (error) {
      const isTimeout = call.signal.reason === timeout
      const text = thrownText(error)
      if (!isTimeout || error === timeout) throw new CallFailed(text, meaningOf(error))
      throw new CallFailed(`${lateText}: ${text}`, meaningOf(error))
    } finally {
      cancelTimer()
      signal.removeEventListener('abort', stop)
    }
  }
}
