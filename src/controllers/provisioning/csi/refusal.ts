// Why a volume was not asked for: thrown by the steps of prepare-request.ts, with what it means for the next try.
// What the driver itself refuses is a CsiError and is judged by src/csi/errors.ts.
import type { Failure } from '../provisioner.ts'

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly how: Failure | 'ignored'

  constructor(how: Failure | 'ignored', because: string) {
    super(because)
    this.how = how
  }
}

/** Claim, class or driver must change before this can work, and nothing was asked of the driver. */
export const refused = (because: string): Refusal => new Refusal('final', because)

/** As refused, and trying again soon is pointless. */
export const infeasible = (because: string): Refusal => new Refusal('infeasible', because)

/** Something that is needed is not there now, and may be later. */
export const notNow = (because: string): Refusal => new Refusal('noChange', because)

/** Not on this node; perhaps on another. */
export const notThere = (because: string): Refusal => new Refusal('reschedule', because)

/** Someone else's to do. */
export const notOurs = (because: string): Refusal => new Refusal('ignored', because)
