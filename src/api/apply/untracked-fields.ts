// Removes from a field set the fields that have no owner in managedFields.
import { difference, type FieldSet, LEAF } from './field-set.ts'
import { fieldElement } from './path-element.ts'

const METADATA_FIELDS = [
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'generation',
  'managedFields',
  'resourceVersion',
]

const UNTRACKED_FIELDS: FieldSet = {
  [fieldElement('apiVersion')]: LEAF,
  [fieldElement('kind')]: LEAF,
  [fieldElement('metadata')]: {
    '.': LEAF,
    ...Object.fromEntries(METADATA_FIELDS.map((name) => [fieldElement(name), LEAF])),
  },
}

export const withoutUntrackedFields = (set: FieldSet): FieldSet => difference(set, UNTRACKED_FIELDS)
