// Creates the bootstrap roles and bindings. At every start it also adds missing rules, subjects, labels and annotations to
// existing ones and restores aggregation rules, unless the object has the annotation autoupdate: "false".
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
        ? repairObject<Role>(client, roleKind, toRole(role), repairRole)
        : repairObject<ClusterRole>(client, clusterRoleKind, toRole(role), repairRole),
    ),
    ...BOOTSTRAP_BINDINGS.map((binding) =>
      binding.namespace
        ? repairObject<RoleBinding>(client, roleBindingKind, toBinding(binding), repairBinding)
        : repairObject<ClusterRoleBinding>(client, clusterRoleBindingKind, toBinding(binding), repairBinding),
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

/** Adds the parts of `expected` that `object` lacks. */
type Repair<T> = (object: T, expected: T) => void

const ATTEMPTS_MAX = 5

/** Creates the object if it does not exist, or adds the parts that it lacks. Several servers may start at once. */
async function repairObject<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  expected: T,
  repairContent: Repair<T>,
): Promise<void> {
  const { name = '', namespace } = expected.metadata
  for (let attempt = 1; ; attempt++) {
    try {
      const storedObject = await client.get(kind, { name, namespace }).catch((error) => {
        if (isNotFound(error)) return undefined
        throw error
      })
      if (!storedObject) {
        await client.create(kind, expected)
        return
      }
      if (storedObject.metadata.annotations?.[AUTO_UPDATE] === 'false') return
      const updatedObject: T = clone(storedObject)
      updatedObject.metadata.labels = { ...updatedObject.metadata.labels, ...expected.metadata.labels }
      updatedObject.metadata.annotations = { ...updatedObject.metadata.annotations, ...expected.metadata.annotations }
      repairContent(updatedObject, expected)
      if (!jsonEquals(updatedObject as unknown as JsonValue, storedObject as unknown as JsonValue))
        await client.update(kind, updatedObject)
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

/** Leaves a binding to another role unchanged, because the role of a binding is immutable. */
const repairBinding: Repair<ClusterRoleBinding> = (binding, expected) => {
  if (!jsonEquals(binding.roleRef, expected.roleRef)) return
  const missingSubjects = expected.subjects?.filter(
    (subject) =>
      !binding.subjects?.some((existingSubject) => jsonEquals(existingSubject as JsonValue, subject as JsonValue)),
  )
  if (missingSubjects && missingSubjects.length > 0)
    binding.subjects = [...(binding.subjects ?? []), ...missingSubjects]
}
