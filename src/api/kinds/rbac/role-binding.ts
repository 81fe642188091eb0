// Declares RoleBinding: grants a role, or a cluster role within one namespace, to subjects.
import { defineKind } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { applyBindingDefaults, bindingColumns, validateBinding, validateBindingUpdate } from './binding-rules.ts'
import { RBAC_GROUP, type RoleBinding, roleBinding } from './rbac-schema.ts'

export const roleBindingKind = defineKind<RoleBinding>({
  group: RBAC_GROUP,
  versions: ['v1'],
  kind: 'RoleBinding',
  plural: 'rolebindings',
  singular: 'rolebinding',
  namespaced: true,
  type: roleBinding,

  nameErrors: pathSegmentProblems,
  defaults: applyBindingDefaults,
  validate: (binding, errors) => validateBinding(binding, errors, { isNamespaced: true }),
  validateUpdate: validateBindingUpdate,

  columns: bindingColumns,
  deleteReturnsObject: false,
})
