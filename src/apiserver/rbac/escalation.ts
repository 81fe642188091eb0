// Rejects writes of roles and bindings with which users would grant rules that they do not hold, unless they have the verb
// `escalate` on the role, or `bind` on the role of the binding. Also rejects roles that are too large to check.

import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { clusterRoleKind } from '../../api/kinds/rbac/cluster-role.ts'
import { type ClusterRole, type PolicyRule, RBAC_GROUP, type RoleRef } from '../../api/kinds/rbac/rbac-schema.ts'
import { roleKind } from '../../api/kinds/rbac/role.ts'
import { forbidden, invalid, notFound } from '../../api/status-error.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission/index.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { MASTERS_GROUP, type UserInfo } from '../security/index.ts'
import { FULL_ACCESS, heldRules, type RbacAuthorizer } from './rbac-authorizer.ts'
import type { RoleIndex } from './role-index.ts'
import { countParts, describeRules, quoteList, uncoveredRules } from './rule-cover.ts'

/** Maximum number of combinations of verb, group, resource and name in one role. A role with more is rejected. */
export const ROLE_PARTS_MAX = 100_000

export function escalationCheck(index: RoleIndex, authorizer: RbacAuthorizer): AdmissionPlugin {
  function checkRole(request: AdmissionRequest, role: AnyObject): void {
    const { user, namespace, name, resource, oldObject } = request
    checkSize(request, role.rules)
    const { plural } = resource.kind
    const permission = { user, verb: 'escalate', group: RBAC_GROUP, version: 'v1', resource: plural, name, namespace }
    if (isPrivileged(user) || authorizer.authorize(permission).allowed) return
    const ownRules = heldRules(index, user, namespace)
    const isAggregated =
      (role as ClusterRole).aggregationRule ?? (oldObject as ClusterRole | undefined)?.aggregationRule
    if (isAggregated && uncoveredRules(ownRules, FULL_ACCESS, { max: 1 }).length > 0) {
      throw forbidden(resource, name, 'must have cluster-admin privileges to use the aggregationRule')
    }
    checkHeldRules(request, ownRules, role.rules)
  }

  function checkBinding(request: AdmissionRequest, { roleRef }: { roleRef: RoleRef }): void {
    const { user, namespace } = request
    const kind = roleRef.kind === 'ClusterRole' ? clusterRoleKind : roleKind
    const permission = {
      user,
      verb: 'bind',
      group: RBAC_GROUP,
      version: 'v1',
      resource: kind.plural,
      name: roleRef.name,
      namespace,
    }
    if (isPrivileged(user) || authorizer.authorize(permission).allowed) return
    const role = request.find<AnyObject>(kind, kind.namespaced ? namespace : '', roleRef.name)
    if (!role) throw notFound(kind, roleRef.name)
    checkHeldRules(request, heldRules(index, user, namespace), role.rules)
  }

  return {
    name: 'RBACEscalation',
    validate(request) {
      const { resource, operation, object, oldObject } = request
      if (resource.group !== RBAC_GROUP || operation === 'DELETE' || !object) return undefined
      if (oldObject && !isContentChanged(object, oldObject)) return undefined
      if (resource.plural.endsWith('bindings')) checkBinding(request, object)
      else checkRole(request, object)
      return undefined
    },
  }
}

const isPrivileged = ({ groups }: UserInfo): boolean => groups.includes(MASTERS_GROUP)

function checkSize({ resource, name }: AdmissionRequest, rules: readonly PolicyRule[]): void {
  const parts = countParts(rules)
  if (parts <= ROLE_PARTS_MAX) return
  const errors = new FieldErrors()
  const message = `must have at most ${ROLE_PARTS_MAX} combinations of verb, group, resource and name; it has ${parts}`
  errors.forbidden('rules', message)
  throw invalid(resource.kind, name, errors.list)
}

function checkHeldRules(
  { resource, name, user }: AdmissionRequest,
  ownRules: readonly PolicyRule[],
  rules: readonly PolicyRule[],
): void {
  const missingRules = uncoveredRules(ownRules, rules, { max: NAMED_PARTS_MAX })
  if (missingRules.length === 0) return
  throw forbidden(
    resource,
    name,
    `user ${JSON.stringify(user.name)} (groups=${quoteList(user.groups)}) is attempting to grant RBAC permissions not currently held:\n` +
      describeRules(missingRules).join('\n'),
  )
}

/** Further parts that the user does not hold are not named. */
const NAMED_PARTS_MAX = 100

/** A garbage collector may change ownerReferences, finalizers and managedFields without holding the rules. */
function isContentChanged(object: AnyObject, old: AnyObject): boolean {
  const contentOf = ({ metadata, ...fields }: AnyObject): JsonValue => {
    const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...meta } = metadata
    return { ...fields, metadata: meta }
  }
  return !jsonEquals(contentOf(object), contentOf(old))
}
