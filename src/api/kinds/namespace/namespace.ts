// Declares Namespace: a scope for names, quotas and access control. After a delete, its phase is Terminating until its
// contents and spec.finalizers are removed. The API server implements delete and finalize.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { dns1123LabelProblems, qualifiedNameProblems } from '../../names.ts'
import { type Namespace, namespace } from './namespace-schema.ts'

/** The label with the namespace's name, for label selectors. */
const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name'
/** The finalizer that keeps a namespace until its contents are deleted. */
const NAMESPACE_FINALIZER = 'kubernetes'

export const namespaceKind = defineKind<Namespace>({
  group: '',
  versions: ['v1'],
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  namespaced: false,
  type: namespace,

  nameErrors: dns1123LabelProblems,
  defaults: setNameLabel,
  prepareForCreate(object) {
    setNameLabel(object) // the name may have been generated after defaults
    const finalizers = object.spec?.finalizers ?? []
    if (!finalizers.includes(NAMESPACE_FINALIZER)) object.spec = { finalizers: [...finalizers, NAMESPACE_FINALIZER] }
    object.status = { phase: 'Active' }
  },
  prepareForUpdate(next, old) {
    if (old.spec) next.spec = structuredClone(old.spec)
    else delete next.spec
  },
  validate(object, errors) {
    for (const name of object.spec?.finalizers ?? []) validateNamespaceFinalizer(name, 'spec.finalizers', errors)
  },
  status: {
    acceptsMetadata: true,
    validate(next, _old, errors) {
      const phase = next.status?.phase ?? ''
      if (!next.metadata.deletionTimestamp && phase !== 'Active') {
        errors.invalid('status.Phase', phase, "may only be 'Active' if `deletionTimestamp` is empty")
      }
      if (next.metadata.deletionTimestamp && phase !== 'Terminating') {
        errors.invalid('status.Phase', phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
      }
    },
  },

  selectableFields: { 'status.phase': (object) => object.status?.phase },
  columns: [
    nameColumn,
    {
      name: 'Status',
      type: 'string',
      doc: 'Active, or Terminating while it is being deleted.',
      cell: (object) => object.status?.phase,
    },
    ageColumn,
  ],
  deleteReturnsObject: true,
})

/** Validates that a finalizer has a standard name or a name with a domain prefix. */
function validateNamespaceFinalizer(name: string, field: string, errors: FieldErrors): void {
  errors.invalidAll(field, name, qualifiedNameProblems(name))
  if (!name.includes('/') && !STANDARD_FINALIZERS.includes(name)) {
    errors.invalid(field, name, 'name is neither a standard finalizer name nor is it fully qualified')
  }
}

const STANDARD_FINALIZERS = [NAMESPACE_FINALIZER, 'orphan', 'foregroundDeletion']

function setNameLabel({ metadata }: Namespace): void {
  if (metadata.name) metadata.labels = { ...metadata.labels, [NAMESPACE_NAME_LABEL]: metadata.name }
}
