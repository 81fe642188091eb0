// Authorizes requests by roles and bindings. Users of the group system:masters may do everything, even before the roles
// are loaded.
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import {
  type AuthorizationAttributes,
  type Authorizer,
  type Decision,
  MASTERS_GROUP,
  type Rules,
  type UserInfo,
} from '../security/index.ts'
import { createDecisionCache } from './decision-cache.ts'
import type { Grant, RoleIndex } from './role-index.ts'
import { ruleAllows } from './rule-match.ts'

export interface RbacAuthorizer extends Authorizer {
  authorize(attributes: AuthorizationAttributes): Decision
  rulesFor(user: UserInfo, namespace: string): Rules
}

export function createRbacAuthorizer(index: RoleIndex): RbacAuthorizer {
  const decisions = createDecisionCache()
  return {
    authorize(attributes) {
      const { user } = attributes
      if (user.groups.includes(MASTERS_GROUP)) return ALLOWED_FOR_MASTERS
      const namespace = attributes.path === undefined ? (attributes.namespace ?? '') : ''
      const grants = index.grantsOf(user, namespace)
      return decisions.get(grants, attributes, () => decide(grants, attributes))
    },

    rulesFor(user, namespace) {
      const rules = heldRules(index, user, namespace)
      return {
        resourceRules: rules
          .filter(({ resources }) => resources !== undefined && resources.length > 0)
          .map(toResourceRule),
        nonResourceRules: rules.flatMap(({ verbs, nonResourceURLs = [] }) =>
          nonResourceURLs.length > 0 ? [{ verbs, nonResourceURLs }] : [],
        ),
        incomplete: false,
      }
    },
  }
}

function decide(grants: readonly Grant[], attributes: AuthorizationAttributes): Decision {
  const missingRoles: string[] = []
  for (const { rules, roleRef, description } of grants) {
    if (!rules) missingRoles.push(describeMissingRole(roleRef))
    else if (rules.some((rule) => ruleAllows(rule, attributes)))
      return { allowed: true, reason: `RBAC: allowed by ${description}` }
  }
  return missingRoles.length === 0
    ? DENIED
    : { allowed: false, reason: `RBAC: ${formatErrors([...new Set(missingRoles)])}` }
}

const DENIED: Decision = { allowed: false }
const ALLOWED_FOR_MASTERS: Decision = { allowed: true, reason: `allowed for the group "${MASTERS_GROUP}"` }
/** The rules of an administrator. */
export const FULL_ACCESS: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** Returns the rules that a user holds in a namespace, or in the whole cluster if the namespace is empty. */
export function heldRules(index: RoleIndex, user: UserInfo, namespace: string): readonly PolicyRule[] {
  if (user.groups.includes(MASTERS_GROUP)) return FULL_ACCESS
  return [...index.grantsOf(user, namespace)].flatMap(({ rules }) => rules ?? [])
}

const toResourceRule = ({ verbs, apiGroups = [], resources = [], resourceNames }: PolicyRule) =>
  resourceNames && resourceNames.length > 0
    ? { verbs, apiGroups, resources, resourceNames }
    : { verbs, apiGroups, resources }

const describeMissingRole = ({ kind, name }: Grant['roleRef']): string =>
  `${kind.toLowerCase()}.rbac.authorization.k8s.io ${JSON.stringify(name)} not found`

const formatErrors = (errors: readonly string[]): string =>
  errors.length === 1 ? errors[0]! : `[${errors.join(', ')}]`
