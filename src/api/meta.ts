// Validates object metadata and label selectors in objects.
import type { FieldErrors } from './field-errors.ts'
import type { Kind } from './kind.ts'
import type { LabelSelector, ObjectMeta, OwnerReference } from './kinds/shared/meta-schema.ts'
import { dns1123LabelProblems, labelValueProblems, namePrefix, qualifiedNameProblems } from './names.ts'

export const ANNOTATIONS_BYTES_MAX = 256 * 1024
/** Finalizers without a domain prefix; all others need one. */
const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

export function validateMeta(kind: Kind, meta: ObjectMeta, errors: FieldErrors): void {
  if (meta.generateName) {
    errors.invalidAll('metadata.generateName', meta.generateName, kind.nameErrors(namePrefix(meta.generateName)))
  }
  if (!meta.name) errors.required('metadata.name', 'name or generateName is required')
  else errors.invalidAll('metadata.name', meta.name, kind.nameErrors(meta.name))
  if (!kind.namespaced) {
    if (meta.namespace) errors.forbidden('metadata.namespace', 'not allowed on this type')
  } else if (!meta.namespace) errors.required('metadata.namespace')
  else errors.invalidAll('metadata.namespace', meta.namespace, dns1123LabelProblems(meta.namespace))

  validateLabels(meta.labels, 'metadata.labels', errors)
  validateAnnotations(meta.annotations, 'metadata.annotations', errors)
  validateOwners(meta.ownerReferences ?? [], errors)
  validateFinalizers(meta.finalizers ?? [], errors)
}

/** Rejects new finalizers on an object that is being deleted. Immutable metadata is not checked here: an update restores it. */
export function validateMetaUpdate(next: ObjectMeta, old: ObjectMeta, errors: FieldErrors): void {
  if (old.deletionTimestamp) {
    const oldFinalizers = new Set(old.finalizers)
    const newFinalizers = (next.finalizers ?? []).filter((finalizer) => !oldFinalizers.has(finalizer))
    if (newFinalizers.length > 0) {
      // The list is formatted as in the Kubernetes message.
      const names = newFinalizers.map((finalizer) => JSON.stringify(finalizer)).join(', ')
      errors.forbidden(
        'metadata.finalizers',
        `no new finalizers can be added if the object is being deleted, found new finalizers []string{${names}}`,
      )
    }
  }
}

export function validateLabels(labels: Record<string, string> | undefined, field: string, errors: FieldErrors): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    errors.invalidAll(field, key, qualifiedNameProblems(key))
    errors.invalidAll(field, value, labelValueProblems(value))
  }
}

export function validateAnnotations(
  annotations: Record<string, string> | undefined,
  field: string,
  errors: FieldErrors,
): void {
  let bytes = 0
  for (const [key, value] of Object.entries(annotations ?? {})) {
    errors.invalidAll(field, key, qualifiedNameProblems(key.toLowerCase()))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) errors.tooLong(field, ANNOTATIONS_BYTES_MAX)
}

function validateOwners(owners: readonly OwnerReference[], errors: FieldErrors): void {
  const field = 'metadata.ownerReferences'
  let controller: string | undefined
  for (const [index, owner] of owners.entries()) {
    const path = `${field}[${index}]`
    if (!owner.apiVersion) errors.invalid(`${path}.apiVersion`, owner.apiVersion, 'version must not be empty')
    else if (!/^([^/]*\/)?[^/]+$/.test(owner.apiVersion)) {
      errors.invalid(`${path}.apiVersion`, owner.apiVersion, 'must be VERSION or GROUP/VERSION')
    }
    if (!owner.kind) errors.invalid(`${path}.kind`, owner.kind, 'must not be empty')
    if (!owner.name) errors.invalid(`${path}.name`, owner.name, 'must not be empty')
    if (!owner.uid) errors.invalid(`${path}.uid`, owner.uid, 'must not be empty')
    if (owner.kind === 'Event' && (owner.apiVersion === 'v1' || owner.apiVersion === 'events.k8s.io/v1')) {
      errors.invalid(path, `${owner.apiVersion}, Kind=Event`, 'is disallowed from being an owner')
    }
    if (!owner.controller) continue
    if (controller !== undefined) {
      errors.invalid(
        field,
        owners,
        `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.name}`,
      )
    } else controller = owner.name
  }
}

function validateFinalizers(finalizers: readonly string[], errors: FieldErrors): void {
  const field = 'metadata.finalizers'
  for (const [index, finalizer] of finalizers.entries()) {
    errors.invalidAll(field, finalizer, qualifiedNameProblems(finalizer))
    if (!finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
      errors.invalid(
        `${field}[${index}]`,
        finalizer,
        'name is neither a standard finalizer name nor is it fully qualified',
      )
    }
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set')
  }
}

/** Validates a label selector in an object, such as a claim's selector. */
export function validateLabelSelector(selector: LabelSelector | undefined, field: string, errors: FieldErrors): void {
  if (!selector) return
  validateLabels(selector.matchLabels, `${field}.matchLabels`, errors)
  for (const [index, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    const path = `${field}.matchExpressions[${index}]`
    switch (operator) {
      case 'In':
      case 'NotIn':
        if (values.length === 0) {
          errors.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
        }
        break
      case 'Exists':
      case 'DoesNotExist':
        if (values.length > 0) {
          errors.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        }
        break
      default:
        errors.invalid(`${path}.operator`, operator, 'not a valid selector operator')
    }
    errors.invalidAll(`${path}.key`, key, qualifiedNameProblems(key))
    for (const [valueIndex, value] of values.entries()) {
      errors.invalidAll(`${path}.values[${valueIndex}]`, value, labelValueProblems(value))
    }
  }
}
