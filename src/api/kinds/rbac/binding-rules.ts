// Sets the defaults of role bindings and cluster role bindings, validates them, and defines their table columns.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import type { Column, KubeObject } from '../../kind.ts'
import { dns1123SubdomainProblems, pathSegmentProblems } from '../../names.ts'
import { validateImmutableField } from '../shared/changed-fields.ts'
import { RBAC_GROUP, type RoleRef, roleRef as roleRefType, type Subject } from './rbac-schema.ts'

interface Binding extends KubeObject {
  roleRef: RoleRef
  subjects?: Subject[]
}

export interface BindingScope {
  readonly isNamespaced: boolean
}

/** Sets the API groups of the role and of users and groups, which clients may omit. */
export function applyBindingDefaults({ roleRef, subjects = [] }: Binding): void {
  if (roleRef.apiGroup === '') roleRef.apiGroup = RBAC_GROUP
  for (const subject of subjects) {
    if (!subject.apiGroup && subject.kind !== 'ServiceAccount') subject.apiGroup = RBAC_GROUP
  }
}

export function validateBinding({ roleRef, subjects = [] }: Binding, errors: FieldErrors, scope: BindingScope): void {
  const roleKinds = scope.isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
  if (roleRef.apiGroup !== RBAC_GROUP) errors.notSupported('roleRef.apiGroup', roleRef.apiGroup, [RBAC_GROUP])
  if (!roleKinds.includes(roleRef.kind)) errors.notSupported('roleRef.kind', roleRef.kind, roleKinds)
  if (roleRef.name === '') errors.required('roleRef.name')
  else errors.invalidAll('roleRef.name', roleRef.name, pathSegmentProblems(roleRef.name))
  for (const [index, subject] of subjects.entries()) validateSubject(subject, `subjects[${index}]`, errors, scope)
}

export const validateBindingUpdate = (next: Binding, old: Binding, errors: FieldErrors): void =>
  validateImmutableField({ field: 'roleRef', type: roleRefType, oldValue: old.roleRef, newValue: next.roleRef }, errors)

function validateSubject(
  { kind, apiGroup = '', name, namespace = '' }: Subject,
  path: string,
  errors: FieldErrors,
  { isNamespaced }: BindingScope,
): void {
  if (name === '') errors.required(`${path}.name`)
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') errors.invalidAll(`${path}.name`, name, dns1123SubdomainProblems(name))
      if (apiGroup !== '') errors.notSupported(`${path}.apiGroup`, apiGroup, [''])
      if (!isNamespaced && namespace === '') errors.required(`${path}.namespace`)
      break
    case 'User':
    case 'Group':
      if (apiGroup !== RBAC_GROUP) errors.notSupported(`${path}.apiGroup`, apiGroup, [RBAC_GROUP])
      break
    default:
      errors.notSupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group'])
  }
}

export const bindingColumns: readonly Column<Binding>[] = [
  nameColumn,
  {
    name: 'Role',
    type: 'string',
    doc: 'Kind and name of the role.',
    cell: ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`,
  },
  ageColumn,
  subjectColumn('Users', 'Users that get the role.', 'User'),
  subjectColumn('Groups', 'Groups that get the role.', 'Group'),
  {
    ...subjectColumn('ServiceAccounts', 'Service accounts that get the role.', 'ServiceAccount'),
    cell: ({ metadata, subjects = [] }) =>
      subjects
        .filter(({ kind }) => kind === 'ServiceAccount')
        .map(({ namespace, name }) => `${namespace || (metadata.namespace ?? '')}/${name}`)
        .join(', '),
  },
]

function subjectColumn(name: string, doc: string, subjectKind: string): Column<Binding> {
  return {
    name,
    type: 'string',
    doc,
    wide: true,
    cell: ({ subjects = [] }) =>
      subjects
        .filter(({ kind }) => kind === subjectKind)
        .map((subject) => subject.name)
        .join(', '),
  }
}
