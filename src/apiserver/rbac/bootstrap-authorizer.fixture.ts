// Creates an authorizer for tests with the bootstrap roles and bindings, without a store.
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { type ClusterRole, RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import { createResources } from '../resources.ts'
import { aggregatedRules } from './aggregate-roles.ts'
import { BOOTSTRAP_BINDINGS, bootstrapRoles } from './bootstrap-policy.ts'
import { createRbacAuthorizer, type RbacAuthorizer } from './rbac-authorizer.ts'
import { createRoleIndex } from './role-index.ts'

export function createBootstrapAuthorizer(): RbacAuthorizer {
  const index = createRoleIndex()
  const roles = bootstrapRoles(createResources(ALL_KINDS).all)
  for (const { name, namespace, labels, rules, aggregatesLabel } of roles) {
    if (namespace) {
      index.setRole(namespace, name, { metadata: { name, namespace }, rules: [...rules] })
      continue
    }
    const aggregationRule = aggregatesLabel
      ? { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregatesLabel]: 'true' } }] } }
      : {}
    index.setClusterRole(name, { metadata: { name, labels: { ...labels } }, rules: [...rules], ...aggregationRule })
  }
  for (const name of ['view', 'edit', 'admin']) {
    const role = index.clusterRoles().find(({ metadata }) => metadata.name === name)!
    index.setClusterRole(name, { ...role, rules: aggregatedRules(role, index.clusterRoles()) } as ClusterRole)
  }
  for (const { name, namespace, role, subjects } of BOOTSTRAP_BINDINGS) {
    const roleRef = { apiGroup: RBAC_GROUP, kind: namespace ? 'Role' : 'ClusterRole', name: role }
    const binding = { metadata: { name }, roleRef, subjects: [...subjects] }
    if (namespace) index.setRoleBinding(namespace, name, binding)
    else index.setClusterRoleBinding(name, binding)
  }
  return createRbacAuthorizer(index)
}
