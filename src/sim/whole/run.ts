// Runs a plan: people act and things break as it says, then all faults end, and once it is quiet everything is judged.
import type { Plan } from './plan.ts'

export interface WholeRun {
  readonly plan: Plan
  /** What the checkers found, first things first. Empty: all is well. */
  readonly violations: readonly Violation[]
  /** Everything noted, in order; two runs of one plan agree on every line. */
  readonly log: readonly string[]
  readonly fingerprint: number
  readonly virtualMs: number
  /** `create claim: done` 12, `edit claim (grow): refused 422` 1 … */
  readonly operations: Readonly<Record<string, number>>
  /** Faults that happened, planned ones and those of the weather, by kind: `crash`, `reply lost`, `driver ABORTED` … */
  readonly faults: Readonly<Record<string, number>>
}

export interface Violation {
  readonly atMs: number
  /** Which rule, as a few stable words: `leak`, `two claims`, `quota`, `shrunk` … Shrinking keeps this. */
  readonly rule: string
  readonly text: string
}
