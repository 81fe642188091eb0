// Decides whether a policy rule allows a request. Rules only add permissions; there is no rule that denies.
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import type { AuthorizationAttributes, ResourceAttributes } from '../security/index.ts'

/** Stands for all verbs, groups, resources or paths. */
export const ALL = '*'

export const ruleAllows = (rule: PolicyRule, attributes: AuthorizationAttributes): boolean =>
  contains(rule.verbs, attributes.verb) &&
  (attributes.path === undefined
    ? allowsResource(rule, attributes)
    : (rule.nonResourceURLs ?? []).some((pattern) => matchesPath(pattern, attributes.path)))

function allowsResource(rule: PolicyRule, { group, resource, subresource, name = '' }: ResourceAttributes): boolean {
  const { apiGroups = [], resources = [], resourceNames = [] } = rule
  return (
    contains(apiGroups, group) &&
    includesResource(resources, resource, subresource) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  )
}

// `pods` does not include `pods/log`. `*` includes all resources and subresources, and `*/log` the logs of all resources.
function includesResource(resources: readonly string[], resource: string, subresource: string | undefined): boolean {
  if (!subresource) return contains(resources, resource)
  return contains(resources, `${resource}/${subresource}`) || resources.includes(`${ALL}/${subresource}`)
}

const contains = (values: readonly string[], value: string): boolean => values.includes(ALL) || values.includes(value)

/** Returns whether a pattern, which may end in `*`, matches the path. */
export const matchesPath = (pattern: string, path: string): boolean =>
  pattern === path || (pattern.endsWith(ALL) && path.startsWith(pattern.slice(0, -1)))
