// Validates changes to a volume. Its volumeMode and, except for an added expansion secret, its source are immutable. Its
// nodeAffinity is immutable once it is set, except that deprecated labels can be renamed. Its attributes class can be set and
// changed, but not removed.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { string } from '../../schema.ts'
import {
  type Change,
  changedFields,
  describeChanges,
  isSameValue,
  validateImmutableField,
} from '../shared/changed-fields.ts'
import { successorOf } from '../shared/deprecated-labels.ts'
import { disabledGateMessage } from '../shared/gate-messages.ts'
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
  const oldSpec = old.spec ?? {}
  const newSpec = next.spec ?? {}
  const sourceChanges = changedFields(persistentVolumeSource, oldSpec, newSpec)
  const rejectedChanges = sourceChanges.filter((change) => !addsExpandSecret(change))
  if (rejectedChanges.length > 0) {
    errors.forbidden(
      'spec.persistentvolumesource',
      `spec.persistentvolumesource is immutable after creation\n${describeChanges(rejectedChanges)}`,
    )
  }
  validateImmutableField(
    { field: 'volumeMode', type: string, oldValue: oldSpec.volumeMode, newValue: newSpec.volumeMode },
    errors,
  )
  validateAffinityChange(oldSpec, newSpec, errors)
  validateAttributesClassChange(oldSpec, newSpec, errors, context)
}

/**
 * Returns whether the change adds controllerExpandSecretRef, which a volume lacks if its class had no such secret when
 * the volume was provisioned.
 */
const addsExpandSecret = ({ path, oldValue }: Change): boolean =>
  path === 'csi.controllerExpandSecretRef' && oldValue === undefined

type Affinity = PersistentVolumeSpec['nodeAffinity']

function validateAffinityChange(
  oldSpec: PersistentVolumeSpec,
  newSpec: PersistentVolumeSpec,
  errors: FieldErrors,
): void {
  if (oldSpec.nodeAffinity === undefined) return // an unset affinity can be set
  const isUnchanged =
    newSpec.nodeAffinity !== undefined &&
    isSameValue(volumeNodeAffinity, withSuccessors(oldSpec.nodeAffinity, newSpec.nodeAffinity), newSpec.nodeAffinity)
  if (isUnchanged) return
  errors.invalid('nodeAffinity', newSpec.nodeAffinity, 'field is immutable, except for updating from beta label to GA')
}

/** Returns the stored affinity with deprecated labels renamed where the new affinity has the successor. */
function withSuccessors(oldAffinity: Affinity, newAffinity: Affinity): Affinity {
  if (!oldAffinity?.required) return oldAffinity
  const renamedTerms = oldAffinity.required.nodeSelectorTerms.map((term, index) =>
    renameLabels(term, newAffinity?.required?.nodeSelectorTerms[index]),
  )
  return { ...oldAffinity, required: { ...oldAffinity.required, nodeSelectorTerms: renamedTerms } }
}

function renameLabels(term: NodeSelectorTerm, newTerm: NodeSelectorTerm | undefined): NodeSelectorTerm {
  return {
    ...term,
    matchExpressions: term.matchExpressions?.map((requirement, index) => {
      const key = newTerm?.matchExpressions?.[index]?.key
      return key !== undefined && successorOf(requirement.key) === key ? { ...requirement, key } : requirement
    }),
  }
}

function validateAttributesClassChange(
  oldSpec: PersistentVolumeSpec,
  newSpec: PersistentVolumeSpec,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  if (oldSpec.volumeAttributesClassName === newSpec.volumeAttributesClassName) return
  const field = 'spec.volumeAttributesClassName'
  if (!gates.enabled('VolumeAttributesClass')) errors.forbidden(field, disabledGateMessage('VolumeAttributesClass'))
  if (newSpec.volumeAttributesClassName === undefined) {
    errors.forbidden(field, 'update from non-nil value to nil is forbidden')
  }
}
