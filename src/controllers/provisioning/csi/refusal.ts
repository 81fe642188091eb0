// Why CreateVolume was not called: thrown by the steps of prepare-request.ts, with the consequence for the next try.
// Errors of the driver are CsiErrors and classified by src/csi/errors.ts.
import type { Failure } from '../provisioner.ts'

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly how: Failure | 'ignored'

  constructor(how: Failure | 'ignored', because: string) {
    super(because)
    this.how = how
  }
}

/** Claim, class or driver must change first. */
export const refused = (because: string): Refusal => new Refusal('final', because)

/** As refused, and retried rarely. */
export const infeasible = (because: string): Refusal => new Refusal('infeasible', because)

/** Something is missing now and may exist later. */
export const notNow = (because: string): Refusal => new Refusal('noChange', because)

/** Not on this node; another may work. */
export const notThere = (because: string): Refusal => new Refusal('reschedule', because)

/** For another component to do. */
export const notOurs = (because: string): Refusal => new Refusal('ignored', because)
