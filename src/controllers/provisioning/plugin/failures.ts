// What a provisioner throws to say more than "it failed". Anything else that is thrown means: something may have been
// made; it is shown as an event and the same request comes again, later and later.

/** Found again across copies of this package, where `instanceof` would not be. */
const MEANS: unique symbol = Symbol.for('stowage.dev/provisioner-failure')

/** Nothing was made, and the same request will fail again: it is tried rarely, and when the class is replaced. */
export class Infeasible extends Error {
  override readonly name = 'Infeasible'
  readonly [MEANS] = 'infeasible'
}

/** Nothing was made and nothing is being made, so a claim that goes away meanwhile may go. It is tried again. */
export class NothingMade extends Error {
  override readonly name = 'NothingMade'
  readonly [MEANS] = 'final'
}

/** Nothing was made, since it cannot be on the selected node: the pod is placed again, perhaps elsewhere. */
export class TryAnotherNode extends Error {
  override readonly name = 'TryAnotherNode'
  readonly [MEANS] = 'reschedule'
}

/** The storage was not reached: whatever an earlier try left is as it was. */
export class NotReached extends Error {
  override readonly name = 'NotReached'
  readonly [MEANS] = 'noChange'
}

/** The claim or volume is for another instance of this provisioner. Nobody is told. */
export class NotMine extends Error {
  override readonly name = 'NotMine'
  readonly [MEANS] = 'ignored'
}

/** The words of ../provisioner.ts. */
export type Meaning = 'infeasible' | 'final' | 'reschedule' | 'noChange' | 'ignored' | 'unfinished'

export function meaningOf(thrown: unknown): Meaning {
  const said = typeof thrown === 'object' && thrown !== null ? (thrown as { [MEANS]?: unknown })[MEANS] : undefined
  return MEANINGS.find((one) => one === said) ?? 'unfinished'
}

const MEANINGS: readonly Meaning[] = ['infeasible', 'final', 'reschedule', 'noChange', 'ignored']
