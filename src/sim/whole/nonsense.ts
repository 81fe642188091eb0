// What people write by mistake, and the server must refuse: an object that holds any of it is never accepted. The words
// occur nowhere else, so that whoever performs an act can tell by looking at it.
import type { Dice } from './dice.ts'
import type { Named, ObjectText, PeopleAct } from './plan.ts'

const NEGATIVE = '-3Gi'
const NO_QUANTITY = 'ten gigabytes'
const UNKNOWN_FIELD = 'colourOfStorage'
const UNKNOWN_MODE = 'ReadWriteSometimes'
const BAD_NAME = 'Not_A_Name'

const NONSENSE: ReadonlySet<unknown> = new Set([NEGATIVE, NO_QUANTITY, UNKNOWN_FIELD, UNKNOWN_MODE, BAD_NAME])

export function isNonsense(written: unknown): boolean {
  if (typeof written !== 'object' || written === null) return NONSENSE.has(written)
  return Object.entries(written).some(([key, value]) => NONSENSE.has(key) || isNonsense(value))
}

/** The claim as somebody who does not look writes it. */
export function nonsenseOf(dice: Dice, claim: { readonly metadata: Named; readonly spec: object }): PeopleAct {
  const { metadata, spec } = claim
  const create = (object: ObjectText): PeopleAct => ({ do: 'create', kind: 'claim', object })
  switch (dice.roll(6)) {
    case 0:
      return create({ metadata, spec: { ...spec, resources: { requests: { storage: NEGATIVE } } } })
    case 1:
      return create({ metadata, spec: { ...spec, resources: { requests: { storage: NO_QUANTITY } } } })
    case 2:
      return create({ metadata, spec: { ...spec, [UNKNOWN_FIELD]: 'red' } })
    case 3:
      return create({ metadata, spec: { ...spec, accessModes: [UNKNOWN_MODE] } })
    case 4:
      return create({ metadata: { ...metadata, name: BAD_NAME }, spec })
    default: {
      const patch = { spec: { resources: { requests: { storage: dice.pick([NEGATIVE, NO_QUANTITY]) } } } }
      const of = { namespace: metadata.namespace, name: metadata.name }
      return { do: 'edit', kind: 'claim', of, patch, why: 'nonsense' }
    }
  }
}
