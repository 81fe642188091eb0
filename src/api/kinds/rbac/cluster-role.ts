// Declares ClusterRole: rules that can be granted in the whole cluster or in one namespace, listed or aggregated from other
// cluster roles.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { labelSelectorFromObject, SelectorError } from '../../selectors.ts'
import { type ClusterRole, clusterRole, RBAC_GROUP } from './rbac-schema.ts'
import { validatePolicyRules } from './role-rules.ts'

export const clusterRoleKind = defineKind<ClusterRole>({
  group: RBAC_GROUP,
  versions: ['v1'],
  kind: 'ClusterRole',
  plural: 'clusterroles',
  singular: 'clusterrole',
  namespaced: false,
  type: clusterRole,

  nameErrors: pathSegmentProblems,
  validate({ rules, aggregationRule }, errors) {
    validatePolicyRules(rules, errors, { isNamespaced: false })
    if (aggregationRule) validateSelectors(aggregationRule, errors)
  },

  columns: [nameColumn, createdAtColumn],
  deleteReturnsObject: false,
})

function validateSelectors(
  { clusterRoleSelectors = [] }: NonNullable<ClusterRole['aggregationRule']>,
  errors: FieldErrors,
): void {
  const field = 'aggregationRule.clusterRoleSelectors'
  if (clusterRoleSelectors.length === 0) {
    errors.required(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')
  }
  for (const [index, selector] of clusterRoleSelectors.entries()) {
    try {
      labelSelectorFromObject(selector)
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error
      errors.invalid(`${field}[${index}]`, selector, error.message)
    }
  }
}
