// The error that the steps of prepare-request.ts throw if CreateVolume cannot be called, with the kind of failure. Errors
// of the driver itself are CsiErrors, which src/csi/errors.ts classifies.
import type { Failure } from '../provisioner.ts'

export class PreparationError extends Error {
  override readonly name = 'PreparationError'
  readonly failure: Failure | 'ignored'

  constructor(failure: Failure | 'ignored', because: string) {
    super(because)
    this.failure = failure
  }
}

/** Returns an error that persists until the claim, the class or the driver changes. */
export const finalError = (because: string): PreparationError => new PreparationError('final', because)

/** Returns an error like finalError after which the request is retried rarely. */
export const infeasibleError = (because: string): PreparationError => new PreparationError('infeasible', because)

/** Returns an error about a missing precondition that other components may fulfill later. */
export const notReadyError = (because: string): PreparationError => new PreparationError('noChange', because)

/** Returns an error after which the scheduler must select another node. */
export const rescheduleError = (because: string): PreparationError => new PreparationError('reschedule', because)

/** Returns an error about a claim that another component provisions. */
export const ignoredError = (because: string): PreparationError => new PreparationError('ignored', because)
