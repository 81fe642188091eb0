// The error that the steps of prepare-request.ts throw if CreateVolume cannot be called, with the kind of failure. Errors
// of the driver itself are CsiErrors, which src/csi/errors.ts classifies.
import type { Failure } from '../provisioner.ts'

export class PreparationError extends Error {
  override readonly name = 'PreparationError'
  readonly failure: Failure | 'ignored'

  constructor(failure: Failure | 'ignored', message: string) {
    super(message)
    this.failure = failure
  }
}

/** Returns an error that persists until the claim, the class or the driver changes. */
export const finalError = (message: string): PreparationError => new PreparationError('final', message)

/** Returns an error like finalError, but the request is retried rarely. */
export const infeasibleError = (message: string): PreparationError => new PreparationError('infeasible', message)

/** Returns an error about a missing precondition that other components may fulfill later. */
export const notReadyError = (message: string): PreparationError => new PreparationError('noChange', message)

/** Returns an error after which the scheduler must select another node. */
export const rescheduleError = (message: string): PreparationError => new PreparationError('reschedule', message)

/** Returns an error about a claim that another component provisions. */
export const ignoredError = (message: string): PreparationError => new PreparationError('ignored', message)
