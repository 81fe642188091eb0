// Fault rules of the fake driver: the calls that they match, and their effects. Rules are plain data, so that the simulator
// and the control socket use the same ones.
import type { CsiFailureCode } from '../errors.ts'

export interface FakeRule {
  /** Method such as `CreateVolume`. Default: every method. */
  readonly method?: string
  /** Name or id of a volume or snapshot. Default: any. */
  readonly volume?: string
  /** Applies only to the nth matching call, starting with 1. */
  readonly nth?: number
  /** Applies only to the first matching calls, up to this number. */
  readonly times?: number
  /** Delay before any other effect. */
  readonly afterMs?: number
  /** Default: the call runs normally. */
  readonly effect?: FakeEffect
}

export type FakeEffect =
  /** Fails without running the handler. */
  | { readonly do: 'fail'; readonly code: CsiFailureCode; readonly message?: string }
  /** Waits for release() before the handler runs, even if the caller has cancelled. */
  | { readonly do: 'hang' }
  /** Runs the handler but loses the response: the connection breaks, or the call hangs until release(). */
  | { readonly do: 'loseReply'; readonly as: 'unavailable' | 'hang' }
  /** Gives the volume this size instead of the requested one. */
  | { readonly do: 'overrideSize'; readonly bytes: number }
  /** Crashes the driver before or after the handler runs. */
  | { readonly do: 'crash'; readonly when: 'before' | 'after' }

export interface Script {
  /** Replaces all rules and resets their counts. */
  setRules(rules: readonly FakeRule[]): void
  /** Returns the first rule that applies to this call, and counts the call in all rules that match it. */
  match(method: string, volumes: readonly string[]): FakeRule | undefined
  /** Resolves at the next release(). */
  hang(): Promise<void>
  release(): void
  readonly hangingCount: number
}

export function createScript(rules: readonly FakeRule[] = []): Script {
  let entries = rules.map((rule) => ({ rule, matches: 0 }))
  let pendingResolvers: (() => void)[] = []
  return {
    setRules(newRules) {
      entries = newRules.map((rule) => ({ rule, matches: 0 }))
    },
    match(method, volumes) {
      let matchingRule: FakeRule | undefined
      for (const entry of entries) {
        const { rule } = entry
        if (rule.method !== undefined && rule.method !== method) continue
        if (rule.volume !== undefined && !volumes.includes(rule.volume)) continue
        entry.matches++
        const applies =
          (rule.nth === undefined || rule.nth === entry.matches) &&
          (rule.times === undefined || entry.matches <= rule.times)
        if (applies) matchingRule ??= rule
      }
      return matchingRule
    },
    hang: () => new Promise((resolve) => void pendingResolvers.push(resolve)),
    release() {
      const resolvers = pendingResolvers
      pendingResolvers = []
      for (const resolve of resolvers) resolve()
    },
    get hangingCount() {
      return pendingResolvers.length
    },
  }
}
