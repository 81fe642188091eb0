// How a fake driver's calls go wrong, as rules: which call, and what happens to it. Rules are plain data, the same for
// a driver in the simulator and one behind a socket.
import type { CsiFailureCode } from '../errors.ts'

export interface FakeRule {
  /** `CreateVolume`; default: every method. */
  readonly method?: string
  /** A volume's or snapshot's name or id; default: every one. */
  readonly volume?: string
  /** Only the nth call that fits, counted from 1. */
  readonly nth?: number
  /** Only the first so many calls that fit. */
  readonly times?: number
  /** The call takes this long before anything else happens. */
  readonly afterMs?: number
  /** Default: none, the call succeeds as it would. */
  readonly effect?: FakeEffect
}

export type FakeEffect =
  /** Nothing is done. */
  | { readonly do: 'fail'; readonly code: CsiFailureCode; readonly message?: string }
  /** Nothing is done until hangs are released; then everything is, whether someone still waits or not. */
  | { readonly do: 'hang' }
  /** It is done, and the reply is lost: as a broken connection, or as silence until hangs are released. */
  | { readonly do: 'loseReply'; readonly as: 'unavailable' | 'hang' }
  /** The volume gets this size, and says so. */
  | { readonly do: 'overrideSize'; readonly bytes: number }
  /** The driver dies, with the work undone or done. */
  | { readonly do: 'crash'; readonly when: 'before' | 'after' }

export interface Script {
  /** Replaces all rules; counting starts anew. */
  setRules(rules: readonly FakeRule[]): void
  /** The first rule for this call, if any. Every call must be shown, for the counts. */
  match(method: string, volumes: readonly string[]): FakeRule | undefined
  /** Settles when hangs are released. */
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
      let taken: FakeRule | undefined
      for (const line of lines) {
        const { rule } = line
        if (rule.method !== undefined && rule.method !== method) continue
        if (rule.volume !== undefined && !volumes.includes(rule.volume)) continue
        line.fitting++
        const applies =
          (rule.nth === undefined || rule.nth === line.fitting) &&
          (rule.times === undefined || line.fitting <= rule.times)
        if (applies) taken ??= rule
      }
      return taken
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
