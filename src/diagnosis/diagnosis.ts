// The result of `stowage why`: a tree from an object down to the causes that keep it from being ready. Plain data, so that it
// can be printed, sent and compared.

/**
 *   ready     there is nothing to do
 *   waiting   another component continues without help
 *   failed    nothing continues until a user changes something, or a component retries what has failed
 *   unknown   the objects that determine the state could not be read
 */
export type DiagnosisState = 'ready' | 'waiting' | 'failed' | 'unknown'

export interface Subject {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/** A remedy, with a command if there is one. */
export interface Fix {
  readonly message: string
  readonly command?: string
  readonly losesData: boolean
}

export interface Diagnosis {
  readonly subject: Subject
  readonly state: DiagnosisState
  /** Machine-readable, in CamelCase. */
  readonly reason: string
  readonly message: string
  /** The values that the message is based on. Sizes are quantities, ages are in seconds. */
  readonly numbers?: Readonly<Record<string, string | number>>
  readonly fixes?: readonly Fix[]
  /** The causes, and related facts in the state `ready`. */
  readonly children?: readonly Diagnosis[]
}

/** Returns the most severe state: failed, then unknown, then waiting. */
export function worstState(states: Iterable<DiagnosisState>): DiagnosisState {
  let worst: DiagnosisState = 'ready'
  for (const state of states) if (SEVERITY[state] > SEVERITY[worst]) worst = state
  return worst
}

const SEVERITY: Readonly<Record<DiagnosisState, number>> = { ready: 0, waiting: 1, unknown: 2, failed: 3 }

export const fix = (message: string, command?: string): Fix => ({
  message,
  ...(command === undefined ? {} : { command }),
  losesData: false,
})

export const destructiveFix = (message: string, command?: string): Fix => ({
  ...fix(message, command),
  losesData: true,
})
