// Errors that a plugin throws to classify a failure. After any other error a volume may exist, so the error is recorded as
// an event and the same request is repeated with backoff.

/** A registered symbol, because `instanceof` fails if a process loads two copies of this package. */
const FAILURE_KIND: unique symbol = Symbol.for('stowage.dev/provisioner-failure')

/** No volume exists, and the same request will fail again. It is retried rarely, and when the class is replaced. */
export class InfeasibleError extends Error {
  override readonly name = 'InfeasibleError'
  readonly [FAILURE_KIND] = 'infeasible'
}

/** No volume exists or is being created, so the claim can be deleted. The request is retried. */
export class NotCreatedError extends Error {
  override readonly name = 'NotCreatedError'
  readonly [FAILURE_KIND] = 'final'
}

/** No volume exists, because it cannot be created for the selected node. The pod is rescheduled. */
export class RescheduleError extends Error {
  override readonly name = 'RescheduleError'
  readonly [FAILURE_KIND] = 'reschedule'
}

/** The storage was not reached, so the result of earlier attempts is unchanged. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
  readonly [FAILURE_KIND] = 'noChange'
}

/** The claim or volume belongs to another instance of this provisioner. No failure is recorded. */
export class IgnoredError extends Error {
  override readonly name = 'IgnoredError'
  readonly [FAILURE_KIND] = 'ignored'
}

/** A failure of ../provisioner.ts or `ignored`. */
export type FailureKind = 'infeasible' | 'final' | 'reschedule' | 'noChange' | 'ignored' | 'unfinished'

export function failureKindOf(thrown: unknown): FailureKind {
  const value =
    typeof thrown === 'object' && thrown !== null ? (thrown as { [FAILURE_KIND]?: unknown })[FAILURE_KIND] : undefined
  return DECLARED_KINDS.find((kind) => kind === value) ?? 'unfinished'
}

const DECLARED_KINDS: readonly FailureKind[] = ['infeasible', 'final', 'reschedule', 'noChange', 'ignored']
