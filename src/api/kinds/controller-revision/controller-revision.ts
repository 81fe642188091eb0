// Declares ControllerRevision: one revision of a stateful set. `kubectl rollout history` and `undo` read the revisions.
import { ageColumn, nameColumn } from '../../columns.ts'
import { isRecord } from '../../decode.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateImmutableField } from '../shared/changed-fields.ts'
import { type ControllerRevision, controllerRevision } from './controller-revision-schema.ts'

export const controllerRevisionKind = defineKind<ControllerRevision>({
  group: 'apps',
  versions: ['v1'],
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  singular: 'controllerrevision',
  namespaced: true,
  type: controllerRevision,

  nameErrors: dns1123SubdomainProblems,
  validate({ data, revision }, errors, _context, old) {
    if (revision < 0) errors.invalid('revision', revision, 'must be greater than or equal to 0')
    if (old) return // data is immutable
    if (data === undefined || data === null) errors.required('data', 'data is mandatory')
    else if (!isRecord(data)) errors.required('data', 'data must be a valid JSON object')
  },
  validateUpdate(next, old, errors) {
    const { type } = controllerRevision.fields.data
    validateImmutableField({ field: 'data', type, oldValue: old.data, newValue: next.data }, errors)
  },

  columns: [
    nameColumn,
    { name: 'Controller', type: 'string', doc: 'Controller that owns the revision.', cell: formatController },
    { name: 'Revision', type: 'string', doc: 'Number of the revision.', cell: ({ revision }) => revision },
    ageColumn,
  ],
  deleteReturnsObject: false,
})

/** Returns the controller as `statefulset.apps/web`. */
function formatController({ metadata }: ControllerRevision): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  if (!owner) return '<none>'
  const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.split('/')[0]}` : ''
  return `${owner.kind.toLowerCase()}${group}/${owner.name}`
}
