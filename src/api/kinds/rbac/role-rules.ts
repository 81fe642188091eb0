// Validates the policy rules of roles and cluster roles.
import type { FieldErrors } from '../../field-errors.ts'
import type { PolicyRule } from './rbac-schema.ts'

export interface PolicyRuleScope {
  readonly isNamespaced: boolean
}

export function validatePolicyRules(rules: readonly PolicyRule[], errors: FieldErrors, scope: PolicyRuleScope): void {
  for (const [index, rule] of rules.entries()) validatePolicyRule(rule, `rules[${index}]`, errors, scope)
}

function validatePolicyRule(
  { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule,
  path: string,
  errors: FieldErrors,
  { isNamespaced }: PolicyRuleScope,
): void {
  if (verbs.length === 0) errors.required(`${path}.verbs`, 'verbs must contain at least one value')
  if (nonResourceURLs.length > 0) {
    const field = `${path}.nonResourceURLs`
    if (isNamespaced) errors.invalid(field, nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs')
    if (apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0) {
      errors.invalid(field, nonResourceURLs, 'rules cannot apply to both regular resources and non-resource URLs')
    }
    return
  }
  if (apiGroups.length === 0) errors.required(`${path}.apiGroups`, 'resource rules must supply at least one api group')
  if (resources.length === 0) errors.required(`${path}.resources`, 'resource rules must supply at least one resource')
}
