// Writes the rules of aggregated cluster roles: those of all cluster roles that their selectors match. Several servers may
// do this at once, because they compute the same rules.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { clusterRoleKind } from '../../api/kinds/rbac/cluster-role.ts'
import type { ClusterRole, PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import type { RoleIndex } from './role-index.ts'

const FIELD_MANAGER = 'clusterrole-aggregation-controller'

/**
 * Updates the roles whose rules differ. A role that changes concurrently is left to the next call, which follows the
 * change of the index.
 */
export async function aggregateRoles(index: RoleIndex, client: Client): Promise<void> {
  const roles = index.clusterRoles()
  for (const role of roles) {
    if (!role.aggregationRule) continue
    const rules = aggregatedRules(role, roles)
    if (jsonEquals(rules as JsonValue, role.rules as JsonValue)) continue
    try {
      await client.update(clusterRoleKind, { ...role, rules }, { fieldManager: FIELD_MANAGER })
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error
    }
  }
}

/** Returns the rules of the selected roles, by selector and name, without duplicates. */
export function aggregatedRules(
  { metadata, aggregationRule }: Readonly<ClusterRole>,
  roles: readonly Readonly<ClusterRole>[],
): PolicyRule[] {
  const rules = new Map<string, PolicyRule>()
  for (const selectorObject of aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = labelSelectorFromObject(selectorObject)
    for (const role of roles) {
      if (role.metadata.name === metadata.name || !matchesLabels(selector, role.metadata.labels)) continue
      for (const rule of role.rules) rules.set(JSON.stringify(rule), rule)
    }
  }
  return [...rules.values()]
}
