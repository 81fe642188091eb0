// Validates changes of a volume. Its source and volumeMode are immutable, and its nodeAffinity once set.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { string } from '../../schema.ts'
import { forbiddenWhileOff } from '../claim/claim-update-rules.ts'
import { type Change, changedFields, describeChanges, mustNotChange, sameValue } from '../shared/changed-fields.ts'
import { successorOf } from '../shared/deprecated-labels.ts'
import type { NodeSelectorTerm } from '../shared/references-schema.ts'
import {
  type PersistentVolume,
  type PersistentVolumeSpec,
  persistentVolumeSource,
  volumeNodeAffinity,
} from './volume-schema.ts'

export function validateVolumeUpdate(
  next: PersistentVolume,
  old: PersistentVolume,
  errors: FieldErrors,
  context: RuleContext,
): void {
  const before = old.spec ?? {}
  const after = next.spec ?? {}
  const rejected = changedFields(persistentVolumeSource, before, after).filter((change) => !addsExpandSecret(change))
  if (rejected.length > 0) {
    errors.forbidden(
      'spec.persistentvolumesource',
      `spec.persistentvolumesource is immutable after creation\n${describeChanges(rejected)}`,
    )
  }
  mustNotChange({ field: 'volumeMode', type: string, before: before.volumeMode, after: after.volumeMode }, errors)
  validateAffinityChange(before, after, errors)
  validateAttributesClassChange(before, after, errors, context)
}

/** controllerExpandSecretRef can be added once, for volumes created before their class had an expansion secret. */
const addsExpandSecret = ({ path, before }: Change): boolean =>
  path === 'csi.controllerExpandSecretRef' && before === undefined

type Affinity = PersistentVolumeSpec['nodeAffinity']

function validateAffinityChange(before: PersistentVolumeSpec, after: PersistentVolumeSpec, errors: FieldErrors): void {
  if (before.nodeAffinity === undefined) return // can be set once
  const unchanged =
    after.nodeAffinity !== undefined &&
    sameValue(volumeNodeAffinity, withSuccessors(before.nodeAffinity, after.nodeAffinity), after.nodeAffinity)
  if (unchanged) return
  errors.invalid('nodeAffinity', after.nodeAffinity, 'field is immutable, except for updating from beta label to GA')
}

/** The stored affinity with every deprecated label renamed for which the new affinity has the successor at the same index. */
function withSuccessors(before: Affinity, after: Affinity): Affinity {
  if (!before?.required) return before
  const renamed = before.required.nodeSelectorTerms.map((term, index) =>
    renameLabels(term, after?.required?.nodeSelectorTerms[index]),
  )
  return { ...before, required: { ...before.required, nodeSelectorTerms: renamed } }
}

function renameLabels(term: NodeSelectorTerm, wanted: NodeSelectorTerm | undefined): NodeSelectorTerm {
  return {
    ...term,
    matchExpressions: term.matchExpressions?.map((requirement, index) => {
      const key = wanted?.matchExpressions?.[index]?.key
      return key !== undefined && successorOf(requirement.key) === key ? { ...requirement, key } : requirement
    }),
  }
}

function validateAttributesClassChange(
  before: PersistentVolumeSpec,
  after: PersistentVolumeSpec,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  if (before.volumeAttributesClassName === after.volumeAttributesClassName) return
  const field = 'spec.volumeAttributesClassName'
  if (!gates.enabled('VolumeAttributesClass')) errors.forbidden(field, forbiddenWhileOff('VolumeAttributesClass'))
  if (after.volumeAttributesClassName === undefined) {
    errors.forbidden(field, 'update from non-nil value to nil is forbidden')
  }
}
