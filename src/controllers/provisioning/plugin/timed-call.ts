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
  /** Of the plugin, for people. */
  readonly name: string
}

export interface Wait {
  /** Fires when nobody needs the answer any more. */
  readonly signal: AbortSignal
  readonly onOverdue?: Overdue | undefined
}

/** What was thrown: as the text that people are shown, and what it means. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly meaning: Meaning

  constructor(text: string, meaning: Meaning) {
    super(text)
    this.meaning = meaning
  }
}

/** A call that gives up when it is told to has done so by then. */
const GIVING_UP_MS = 1_000
/** A call that continues is reported repeatedly, because events expire after an hour. */
const REMIND_MS = 600_000

/** The given function calls with a signal that fires with the caller's, or when the time is over. */
export function timedCalls({ clock, timeoutMs, name }: TimedCalls) {
  const tooLong = `within the timeout of ${timeoutMs / 1_000} s`

  return async <T>({ signal, onOverdue }: Wait, run: (call: Call) => Promise<T>): Promise<T> => {
    // A listener added now would never be called.
    if (signal.aborted) throw new CallFailed(`${name} was not asked: ${thrownText(signal.reason)}.`, 'noChange')
    const call = new AbortController()
    const overtime = new Error(`${name} was not done ${tooLong}.`)
    const stop = () => call.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    const remind = () => {
      onOverdue?.(
        `${name} was told to give up, since it was not done ${tooLong}, and does not. It is waited for and not asked again ` +
          'before it ends; if it never does, restart the provisioner.',
      )
      cancelTimer = clock.after(REMIND_MS, remind)
    }
    let cancelTimer = clock.after(timeoutMs, () => {
      call.abort(overtime)
      cancelTimer = clock.after(GIVING_UP_MS, remind)
    })
    try {
      return await run({ signal: call.signal })
    } catch (error) {
      const isOvertime = call.signal.reason === overtime
      const text = thrownText(error)
      if (!isOvertime || error === overtime) throw new CallFailed(text, meaningOf(error))
      throw new CallFailed(`${name} was not done ${tooLong}: ${text}`, meaningOf(error))
    } finally {
      cancelTimer()
      signal.removeEventListener('abort', stop)
    }
  }
}
