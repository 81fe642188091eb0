// Validates changes of a claim. Its spec is immutable, except that volumeName and an unset storageClassName can be set
// once, and that a bound claim can change its size, attributes class, iops and throughput.
// Admission checks whether the class allows expansion.
import type { FeatureGate } from '../../feature-gates.ts'
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { compareQuantities } from '../../quantity.ts'
import { string } from '../../schema.ts'
import { type Change, changedFields, describeChanges, mustNotChange } from '../shared/changed-fields.ts'
import { ALPHA_CLASS_ANNOTATION, annotationOf, BETA_CLASS_ANNOTATION } from '../shared/class-names.ts'
import { amountOf, IO_RESOURCES, isIoResource, RESOURCE_PARTS, withClaimIoInBytes } from '../shared/provisioned-io.ts'
import { withBothDataSources } from './claim-data-source.ts'
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
  const before = normalized(old.spec ?? {})
  const after = next.spec ?? {}
  const changes = changedFields(persistentVolumeClaimSpec, before, after)
  const adoptsClass = validateClassAdoption(next, old, errors)

  const rejected = changes.filter(({ path }) => {
    if (path === 'storageClassName') return !adoptsClass
    if (path === 'volumeName') return Boolean(before.volumeName)
    if (path.startsWith('allocatedResources')) return false // set by the server
    return !(isBound(old) && CHANGEABLE_WHILE_BOUND.has(path))
  })
  if (rejected.length > 0) {
    errors.forbidden('spec', `${SPEC_IS_IMMUTABLE}\n${describeChanges(rejected)}`)
  }
  validateShrink(next, old, errors, context)
  mustNotChange({ field: 'volumeMode', type: string, before: before.volumeMode, after: after.volumeMode }, errors)
  validateAttributesClassChange(next, old, errors, context)
  validateIoChange(changes, errors, context)
}

const SPEC_IS_IMMUTABLE =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'

const IO_PATHS = new Set(RESOURCE_PARTS.flatMap((part) => IO_RESOURCES.map((name) => `resources.${part}.${name}`)))

const CHANGEABLE_WHILE_BOUND = new Set(['resources.requests.storage', 'volumeAttributesClassName', ...IO_PATHS])

/** A claim that was stored before the server normalized these fields is compared as if it had. */
const normalized = (spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec =>
  withBothDataSources(withClaimIoInBytes(spec))

const isBound = (claim: PersistentVolumeClaim): boolean => claim.status?.phase === 'Bound'

/** Whether storageClassName may be set now. A class in an annotation may move to the field but not change. */
function validateClassAdoption(next: PersistentVolumeClaim, old: PersistentVolumeClaim, errors: FieldErrors): boolean {
  const className = next.spec?.storageClassName
  const annotated = annotatedClass(old)
  const stillAnnotated = annotatedClass(next)
  const wasUnset = old.spec?.storageClassName === undefined
  const movesIntoField =
    annotated !== undefined &&
    wasUnset &&
    className === annotated &&
    (stillAnnotated === undefined || stillAnnotated === annotated)
  if (movesIntoField) return true
  for (const annotation of CLASS_ANNOTATIONS) {
    const after = annotationOf(next, annotation) ?? ''
    if (after !== (annotationOf(old, annotation) ?? '')) {
      errors.invalid(`metadata.annotations.${annotation}`, after, 'field is immutable')
    }
  }
  return wasUnset && className !== undefined && (annotated === undefined || annotated === className)
}

const CLASS_ANNOTATIONS = [BETA_CLASS_ANNOTATION, ALPHA_CLASS_ANNOTATION]

const annotatedClass = (claim: PersistentVolumeClaim): string | undefined =>
  annotationOf(claim, BETA_CLASS_ANNOTATION) ?? annotationOf(claim, ALPHA_CLASS_ANNOTATION)

/** A request can be lowered to undo an expansion that has not happened, but not below the capacity of the volume. */
function validateShrink(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  const wanted = storageIn(next.spec?.resources?.requests)
  if (compareQuantities(wanted, storageIn(old.spec?.resources?.requests)) >= 0) return
  const field = 'spec.resources.requests.storage'
  if (!gates.enabled('RecoverExpansionFailure') && !hasAllocatedResources(old)) {
    errors.forbidden(field, 'field can not be less than previous value')
  } else if (compareQuantities(wanted, storageIn(old.status?.capacity)) < 0) {
    errors.forbidden(field, 'field can not be less than status.capacity')
  }
}

const storageIn = (list: Record<string, string> | undefined): string => amountOf(list, 'storage') ?? '0'

/** The claim already uses recovery from failed expansion, so its rules apply even while the gate is off. */
const hasAllocatedResources = ({ spec, status }: PersistentVolumeClaim): boolean =>
  hasOtherThanIo(spec?.allocatedResources) ||
  hasOtherThanIo(status?.allocatedResources) ||
  hasOtherThanIo(status?.allocatedResourceStatuses)

/** iops and throughput have a separate feature gate. */
const hasOtherThanIo = (list: Record<string, unknown> = {}): boolean =>
  Object.keys(list).some((name) => !isIoResource(name))

function validateAttributesClassChange(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  const before = old.spec?.volumeAttributesClassName
  const after = next.spec?.volumeAttributesClassName
  if (before === after) return
  const field = 'spec.volumeAttributesClassName'
  if (!gates.enabled('VolumeAttributesClass')) errors.forbidden(field, forbiddenWhileOff('VolumeAttributesClass'))
  const inEffect = old.status?.currentVolumeAttributesClassName
  if (!inEffect || after) return
  const none = after === undefined ? 'nil' : 'empty string'
  errors.forbidden(field, `update to ${none} is forbidden when status.currentVolumeAttributesClassName is not nil`)
}

function validateIoChange(changes: readonly Change[], errors: FieldErrors, { gates }: RuleContext): void {
  if (gates.enabled('VolumeProvisionedIO')) return
  for (const { path } of changes) {
    if (IO_PATHS.has(path)) errors.forbidden(`spec.${path}`, forbiddenWhileOff('VolumeProvisionedIO'))
  }
}

export const forbiddenWhileOff = (gate: FeatureGate): string =>
  `update is forbidden when the ${gate} feature gate is disabled`
