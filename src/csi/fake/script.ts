// Fault rules of the fake driver: which calls they match, and with what effect. Rules are plain data, so they work
// the same in the simulator and over the control socket.
import type { CsiFailureCode } from '../errors.ts'

export interface FakeRule {
  /** `CreateVolume`; default: every method. */
  readonly method?: string
  /** Name or id of a volume or snapshot; default: any. */
  readonly volume?: string
  /** Only the nth matching call, counting from 1. */
  readonly nth?: number
  /** Only the first matching calls, up to this number. */
  readonly times?: number
  /** Delay before any other effect. */
  readonly afterMs?: number
  /** Default: none; the call runs normally. */
  readonly effect?: FakeEffect
}

export type FakeEffect =
  /** Fails without running the handler. */
  | { readonly do: 'fail'; readonly code: CsiFailureCode; readonly message?: string }
  /** Waits for release() before the handler runs, even if the caller has cancelled. */
  | { readonly do: 'hang' }
  /** Runs the handler but loses the response: the connection breaks, or the call hangs until release(). */
  | { readonly do: 'loseReply'; readonly as: 'unavailable' | 'hang' }
  /** The volume gets this size and reports it. */
  | { readonly do: 'overrideSize'; readonly bytes: number }
  /** The driver crashes before or after the handler runs. */
  | { readonly do: 'crash'; readonly when: 'before' | 'after' }

export interface Script {
  /** Replaces all rules and resets their counts. */
  setRules(rules: readonly FakeRule[]): void
  /** Returns the first rule that applies to this call, and counts the call in all rules that match it. */
  match(method: string, volumes: readonly string[]): FakeRule | undefined
  /** Resolves at the next release(). */
  hang(): Promise<void>
  release(): void
  readonly hanging: number
}

export function createScript(rules: readonly FakeRule[] = []): Script {
  let lines = rules.map((rule) => ({ rule, fitting: 0 }))
  let waiting: (() => void)[] = []
  return {
    setRules(next) {
      lines = next.map((rule) => ({ rule, fitting: 0 }))
    },
    match(method, volumes) {
      let matched: FakeRule | undefined
      for (const line of lines) {
        const { rule } = line
        if (rule.method !== undefined && rule.method !== method) continue
        if (rule.volume !== undefined && !volumes.includes(rule.volume)) continue
        line.fitting++
        const applies =
          (rule.nth === undefined || rule.nth === line.fitting) &&
          (rule.times === undefined || line.fitting <= rule.times)
        if (applies) matched ??= rule
      }
      return matched
    },
    hang: () => new Promise((resolve) => void waiting.push(resolve)),
    release() {
      const released = waiting
      waiting = []
      for (const resolve of released) resolve()
    },
    get hanging() {
      return waiting.length
    },
  }
}
