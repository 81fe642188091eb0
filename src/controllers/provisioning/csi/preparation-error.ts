// Why CreateVolume was not called: thrown by the steps of prepare-request.ts, with the consequence for the next try.
// Errors of the driver are CsiErrors and classified by src/csi/errors.ts.
import type { Failure } from '../provisioner.ts'

export class PreparationError extends Error {
  override readonly name = 'Refusal'
  readonly failure: Failure | 'ignored'

  constructor(failure: Failure | 'ignored', because: string) {
    super(because)
    this.failure = failure
  }
}

/** Claim, class or driver must change first. */
export const finalError = (because: string): PreparationError => new PreparationError('final', because)

/** As refused, and retried rarely. */
export const infeasibleError = (because: string): PreparationError => new PreparationError('infeasible', because)

/** Something is missing now and may exist later. */
export const notReadyError = (because: string): PreparationError => new PreparationError('noChange', because)

/** Not on this node; another may work. */
export const rescheduleError = (because: string): PreparationError => new PreparationError('reschedule', because)

/** For another component to do. */
export const ignoredError = (because: string): PreparationError => new PreparationError('ignored', because)
