// Declares ClusterRoleBinding: grants a cluster role to subjects.
import { defineKind } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { applyBindingDefaults, bindingColumns, validateBinding, validateBindingUpdate } from './binding-rules.ts'
import { type ClusterRoleBinding, clusterRoleBinding, RBAC_GROUP } from './rbac-schema.ts'

export const clusterRoleBindingKind = defineKind<ClusterRoleBinding>({
  group: RBAC_GROUP,
  versions: ['v1'],
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  singular: 'clusterrolebinding',
  namespaced: false,
  type: clusterRoleBinding,

  nameErrors: pathSegmentProblems,
  defaults: applyBindingDefaults,
  validate: (binding, errors) => validateBinding(binding, errors, { isNamespaced: false }),
  validateUpdate: validateBindingUpdate,

  columns: bindingColumns,
  deleteReturnsObject: false,
})
