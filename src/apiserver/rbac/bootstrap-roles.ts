// Creates the bootstrap roles and bindings, and adds what they lack at every start. The annotation autoupdate: "false" on an
// object prevents this.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { clusterRoleKind } from '../../api/kinds/rbac/cluster-role.ts'
import { clusterRoleBindingKind } from '../../api/kinds/rbac/cluster-role-binding.ts'
import {
  type ClusterRole,
  type ClusterRoleBinding,
  RBAC_GROUP,
  type Role,
  type RoleBinding,
} from '../../api/kinds/rbac/rbac-schema.ts'
import { roleKind } from '../../api/kinds/rbac/role.ts'
import { roleBindingKind } from '../../api/kinds/rbac/role-binding.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { Client } from '../../client/client.ts'
import type { Resources } from '../resources.ts'
import { BOOTSTRAP_BINDINGS, type BootstrapBinding, type BootstrapRole, bootstrapRoles } from './bootstrap-policy.ts'
import { uncoveredRules } from './rule-cover.ts'

const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate'
const METADATA = {
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
  annotations: { [AUTO_UPDATE]: 'true' },
}

export async function createBootstrapRoles(client: Client, resources: Resources): Promise<void> {
  if (!(await client.serves(clusterRoleKind))) return
  await Promise.all([
    ...bootstrapRoles(resources.all).map((role) =>
      role.namespace
        ? repair<Role>(client, roleKind, toRole(role), repairRole)
        : repair<ClusterRole>(client, clusterRoleKind, toRole(role), repairRole),
    ),
    ...BOOTSTRAP_BINDINGS.map((binding) =>
      binding.namespace
        ? repair<RoleBinding>(client, roleBindingKind, toBinding(binding), repairBinding)
        : repair<ClusterRoleBinding>(client, clusterRoleBindingKind, toBinding(binding), repairBinding),
    ),
  ])
}

const toRole = ({ name, namespace, labels, rules, aggregatesLabel }: BootstrapRole): ClusterRole => ({
  metadata: { name, ...(namespace ? { namespace } : {}), ...METADATA, labels: { ...METADATA.labels, ...labels } },
  rules: [...rules],
  ...(aggregatesLabel
    ? { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregatesLabel]: 'true' } }] } }
    : {}),
})

const toBinding = ({ name, namespace, role, subjects }: BootstrapBinding): ClusterRoleBinding => ({
  metadata: { name, ...(namespace ? { namespace } : {}), ...METADATA },
  subjects: [...subjects],
  roleRef: { apiGroup: RBAC_GROUP, kind: namespace ? 'Role' : 'ClusterRole', name: role },
})

/** Adds what `object` lacks of `expected`. */
type Repair<T> = (object: T, expected: T) => void

const ATTEMPTS_MAX = 5

/** Creates the object if it does not exist, or adds what it lacks. Several servers may start at once. */
async function repair<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  expected: T,
  repairContent: Repair<T>,
): Promise<void> {
  const { name = '', namespace } = expected.metadata
  for (let attempt = 1; ; attempt++) {
    try {
      const stored = await client.get(kind, { name, namespace }).catch((error) => {
        if (isNotFound(error)) return undefined
        throw error
      })
      if (!stored) {
        await client.create(kind, expected)
        return
      }
      if (stored.metadata.annotations?.[AUTO_UPDATE] === 'false') return
      const next: T = clone(stored)
      next.metadata.labels = { ...next.metadata.labels, ...expected.metadata.labels }
      next.metadata.annotations = { ...next.metadata.annotations, ...expected.metadata.annotations }
      repairContent(next, expected)
      if (!jsonEquals(next as unknown as JsonValue, stored as unknown as JsonValue)) await client.update(kind, next)
      return
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !(isAlreadyExists(error) || isConflict(error))) throw error
    }
  }
}

const repairRole: Repair<ClusterRole> = (role, expected) => {
  if (expected.aggregationRule) role.aggregationRule = expected.aggregationRule
  else role.rules.push(...uncoveredRules(role.rules, expected.rules))
}

/** A binding to another role is left alone: its role cannot be changed. */
const repairBinding: Repair<ClusterRoleBinding> = (binding, expected) => {
  if (!jsonEquals(binding.roleRef, expected.roleRef)) return
  const missing = expected.subjects?.filter(
    (subject) => !binding.subjects?.some((other) => jsonEquals(other as JsonValue, subject as JsonValue)),
  )
  if (missing && missing.length > 0) binding.subjects = [...(binding.subjects ?? []), ...missing]
}
