// Generates claims and edits of claims that the server must reject. Each contains a marker value that occurs nowhere else, by
// which isInvalid recognizes an accepted one.

import type { Manifest, Ref, UserAction } from '../plan/plan.ts'
import type { Rng } from './rng.ts'

const NEGATIVE = '-3Gi'
const NO_QUANTITY = 'ten gigabytes'
const UNKNOWN_FIELD = 'colourOfStorage'
const UNKNOWN_MODE = 'ReadWriteSometimes'
const BAD_NAME = 'Not_A_Name'

const INVALID_MARKERS: ReadonlySet<unknown> = new Set([NEGATIVE, NO_QUANTITY, UNKNOWN_FIELD, UNKNOWN_MODE, BAD_NAME])

export function isInvalid(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return INVALID_MARKERS.has(value)
  return Object.entries(value).some(([key, field]) => INVALID_MARKERS.has(key) || isInvalid(field))
}

/** Creates or edits the claim in an invalid way. */
export function generateInvalidAction(rng: Rng, claim: { readonly metadata: Ref; readonly spec: object }): UserAction {
  const { metadata, spec } = claim
  const create = (object: Manifest): UserAction => ({ do: 'create', kind: 'claim', object })
  switch (rng.below(6)) {
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
      const patch = { spec: { resources: { requests: { storage: rng.pick([NEGATIVE, NO_QUANTITY]) } } } }
      const ref = { namespace: metadata.namespace, name: metadata.name }
      return { do: 'edit', kind: 'claim', ref, patch, purpose: 'invalid' }
    }
  }
}
