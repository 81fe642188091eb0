// Finds the rule of an audit policy that applies to a request.
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { UserInfo } from '../security/index.ts'
import type { AuditPolicy, AuditRule } from './policy.ts'

/** A request; the route is undefined if its path is invalid, and the user if the credentials were rejected. */
export interface AuditAttributes {
  readonly user: UserInfo | undefined
  readonly route: ResourceRequest | PathRequest | undefined
}

/** Returns the first rule that matches. */
export const matchingRule = (policy: AuditPolicy, attributes: AuditAttributes): AuditRule | undefined =>
  policy.find((rule) => matches(rule, attributes))

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
  const combined = subresource ? `${plural}/${subresource}` : plural
  return resources.some(
    (resource) =>
      resource === combined ||
      resource === '*' ||
      resource === `${plural}/*` ||
      (subresource !== '' && resource === `*/${subresource}`),
  )
}

const matchesUrl = (pattern: string, path: string): boolean =>
  pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)))
