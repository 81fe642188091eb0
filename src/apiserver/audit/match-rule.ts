// Finds the rule of an audit policy that applies to a request.
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { UserInfo } from '../security/index.ts'
import type { AuditPolicy, AuditRule } from './policy.ts'

/** A request; the route is undefined if its path is invalid, and the user if the credentials were rejected. */
export interface AuditAttributes {
  readonly user: UserInfo | undefined
  readonly route: ResourceRequest | PathRequest | undefined
}

export type FindRule = (attributes: AuditAttributes) => AuditRule | undefined

/** Maximum number of cached rules per user. When it is reached, the user's cache is cleared. */
const CACHED_RULES_MAX = 500

/**
 * Returns a function that finds the first rule that matches. It caches the rules of each user's requests for resources,
 * unless a rule of the policy depends on the names of objects.
 */
export function createRuleFinder(policy: AuditPolicy): FindRule {
  const rulesByUser = new WeakMap<UserInfo, Map<string, AuditRule | undefined>>()
  const find: FindRule = (attributes) => policy.find((rule) => matches(rule, attributes))
  const hasNames = policy.some(({ resources }) => resources?.some(({ resourceNames }) => resourceNames))
  if (hasNames) return find
  return (attributes) => {
    const { user, route } = attributes
    if (!user || route?.is !== 'resource') return find(attributes)
    const rules = rulesByUser.get(user) ?? new Map<string, AuditRule | undefined>()
    rulesByUser.set(user, rules)
    const key = keyOf(route)
    const cachedRule = rules.get(key)
    if (cachedRule || rules.has(key)) return cachedRule
    const rule = find(attributes)
    if (rules.size >= CACHED_RULES_MAX) rules.clear()
    rules.set(key, rule)
    return rule
  }
}

/** Begins with lengths, because a client chooses the parts and could otherwise make the keys of two requests equal. */
const keyOf = ({ verb, group, plural, subresource, namespace }: ResourceRequest): string =>
  `${group.length} ${plural.length} ${subresource.length} ${verb} ${group}${plural}${subresource}${namespace}`

/** Empty lists are absent from a decoded rule. */
function matches(rule: AuditRule, { user, route }: AuditAttributes): boolean {
  const { users, userGroups, verbs, namespaces, resources, nonResourceURLs } = rule
  if (verbs && !(route && verbs.includes(route.verb))) return false
  if (users && !(user && users.includes(user.name))) return false
  if (userGroups && !user?.groups.some((group) => userGroups.includes(group))) return false
  if (namespaces || resources) {
    if (route?.is !== 'resource') return false
    if (namespaces && !namespaces.includes(route.namespace)) return false
    return !resources || resources.some((group) => includesResource(group, route))
  }
  if (!nonResourceURLs) return true
  return route?.is === 'path' && nonResourceURLs.some((pattern) => matchesUrl(pattern, route.path))
}

type GroupResources = NonNullable<AuditRule['resources']>[number]

/** `pods` does not include `pods/log`; `pods/*` includes the pods and all their subresources. */
function includesResource(
  { group = '', resources, resourceNames }: GroupResources,
  { group: requestGroup, plural, subresource, name }: ResourceRequest,
): boolean {
  if (group !== requestGroup && group !== '*') return false
  if (!resources) return true
  if (resourceNames && !resourceNames.includes(name)) return false
  const requestResource = subresource ? `${plural}/${subresource}` : plural
  return resources.some(
    (resource) =>
      resource === requestResource ||
      resource === '*' ||
      resource === `${plural}/*` ||
      (subresource !== '' && resource === `*/${subresource}`),
  )
}

const matchesUrl = (pattern: string, path: string): boolean =>
  pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)))
