// Validates changes to a claim. Its spec is immutable, except that volumeName and an unset storageClassName can be set
// once, and that a bound claim can change its size, attributes class, iops and throughput.
// Admission checks whether the class allows expansion.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { compareQuantities } from '../../quantity.ts'
import { string } from '../../schema.ts'
import { type Change, changedFields, describeChanges, validateImmutableField } from '../shared/changed-fields.ts'
import { ALPHA_CLASS_ANNOTATION, annotationOf, BETA_CLASS_ANNOTATION } from '../shared/class-names.ts'
import { disabledGateMessage } from '../shared/gate-messages.ts'
import {
  amountOf,
  IO_RESOURCES,
  isIoResource,
  REQUESTS_AND_LIMITS,
  withClaimIoInBytes,
} from '../shared/provisioned-io.ts'
import { mirrorDataSource } from './claim-data-source.ts'
import {
  type PersistentVolumeClaim,
  type PersistentVolumeClaimSpec,
  persistentVolumeClaimSpec,
} from './claim-schema.ts'

export function validateClaimUpdate(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  context: RuleContext,
): void {
  const oldSpec = normalizeSpec(old.spec ?? {})
  const newSpec = next.spec ?? {}
  const changes = changedFields(persistentVolumeClaimSpec, oldSpec, newSpec)
  const canChangeClass = validateClassNameChange(next, old, errors)

  const rejectedChanges = changes.filter(({ path }) => {
    if (path === 'storageClassName') return !canChangeClass
    if (path === 'volumeName') return Boolean(oldSpec.volumeName)
    if (path.startsWith('allocatedResources')) return false // set by the server
    return !(isBound(old) && MUTABLE_WHEN_BOUND.has(path))
  })
  if (rejectedChanges.length > 0) {
    errors.forbidden('spec', `${IMMUTABLE_SPEC_MESSAGE}\n${describeChanges(rejectedChanges)}`)
  }
  validateShrink(next, old, errors, context)
  validateImmutableField(
    { field: 'volumeMode', type: string, oldValue: oldSpec.volumeMode, newValue: newSpec.volumeMode },
    errors,
  )
  validateAttributesClassChange(next, old, errors, context)
  validateIoChange(changes, errors, context)
}

const IMMUTABLE_SPEC_MESSAGE =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'

const IO_PATHS = new Set(REQUESTS_AND_LIMITS.flatMap((part) => IO_RESOURCES.map((name) => `resources.${part}.${name}`)))

const MUTABLE_WHEN_BOUND = new Set(['resources.requests.storage', 'volumeAttributesClassName', ...IO_PATHS])

/** Normalizes a stored spec, which may have been written before the server normalized these fields. */
const normalizeSpec = (spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec =>
  mirrorDataSource(withClaimIoInBytes(spec))

const isBound = (claim: PersistentVolumeClaim): boolean => claim.status?.phase === 'Bound'

/** Returns whether storageClassName may change. A class in an annotation may move to the field but not change. */
function validateClassNameChange(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
): boolean {
  const className = next.spec?.storageClassName
  const oldAnnotation = annotatedClass(old)
  const newAnnotation = annotatedClass(next)
  const wasUnset = old.spec?.storageClassName === undefined
  const isMovedToField =
    oldAnnotation !== undefined &&
    wasUnset &&
    className === oldAnnotation &&
    (newAnnotation === undefined || newAnnotation === oldAnnotation)
  if (isMovedToField) return true
  for (const annotation of CLASS_ANNOTATIONS) {
    const newClass = annotationOf(next, annotation) ?? ''
    if (newClass !== (annotationOf(old, annotation) ?? '')) {
      errors.invalid(`metadata.annotations.${annotation}`, newClass, 'field is immutable')
    }
  }
  return wasUnset && className !== undefined && (oldAnnotation === undefined || oldAnnotation === className)
}

const CLASS_ANNOTATIONS = [BETA_CLASS_ANNOTATION, ALPHA_CLASS_ANNOTATION]

const annotatedClass = (claim: PersistentVolumeClaim): string | undefined =>
  annotationOf(claim, BETA_CLASS_ANNOTATION) ?? annotationOf(claim, ALPHA_CLASS_ANNOTATION)

/** Validates a lower request, which cancels an expansion but must not be below the volume's capacity. */
function validateShrink(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  const request = storageIn(next.spec?.resources?.requests)
  if (compareQuantities(request, storageIn(old.spec?.resources?.requests)) >= 0) return
  const field = 'spec.resources.requests.storage'
  if (!gates.enabled('RecoverExpansionFailure') && !hasAllocatedResources(old)) {
    errors.forbidden(field, 'field can not be less than previous value')
  } else if (compareQuantities(request, storageIn(old.status?.capacity)) < 0) {
    errors.forbidden(field, 'field can not be less than status.capacity')
  }
}

const storageIn = (list: Record<string, string> | undefined): string => amountOf(list, 'storage') ?? '0'

/** Returns whether the claim already uses recovery from failed expansion, whose rules then apply without the gate. */
const hasAllocatedResources = ({ spec, status }: PersistentVolumeClaim): boolean =>
  hasNonIoResource(spec?.allocatedResources) ||
  hasNonIoResource(status?.allocatedResources) ||
  hasNonIoResource(status?.allocatedResourceStatuses)

/** Ignores iops and throughput, which have a separate feature gate. */
const hasNonIoResource = (list: Record<string, unknown> = {}): boolean =>
  Object.keys(list).some((name) => !isIoResource(name))

function validateAttributesClassChange(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  const oldName = old.spec?.volumeAttributesClassName
  const newName = next.spec?.volumeAttributesClassName
  if (oldName === newName) return
  const field = 'spec.volumeAttributesClassName'
  if (!gates.enabled('VolumeAttributesClass')) errors.forbidden(field, disabledGateMessage('VolumeAttributesClass'))
  const currentClass = old.status?.currentVolumeAttributesClassName
  if (!currentClass || newName) return
  const valueText = newName === undefined ? 'nil' : 'empty string'
  errors.forbidden(field, `update to ${valueText} is forbidden when status.currentVolumeAttributesClassName is not nil`)
}

function validateIoChange(changes: readonly Change[], errors: FieldErrors, { gates }: RuleContext): void {
  if (gates.enabled('VolumeProvisionedIO')) return
  for (const { path } of changes) {
    if (IO_PATHS.has(path)) errors.forbidden(`spec.${path}`, disabledGateMessage('VolumeProvisionedIO'))
  }
}
