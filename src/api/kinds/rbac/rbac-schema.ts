// The schemas of rbac.authorization.k8s.io: roles, which hold rules, and bindings, which grant a role to subjects.
import { type Infer, list, object, opt, ptr, req, string } from '../../schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'

export const RBAC_GROUP = 'rbac.authorization.k8s.io'

const policyRule = object('io.k8s.api.rbac.v1.PolicyRule', 'Verbs that are allowed on resources or on paths.', {
  verbs: req(1, list(string), 'Allowed verbs; * for all.'),
  apiGroups: opt(2, list(string), 'API groups of the resources; * for all.'),
  resources: opt(3, list(string), 'Resources, such as pods or pods/log; * for all.'),
  resourceNames: opt(4, list(string), 'Names of objects; empty for all.'),
  nonResourceURLs: opt(5, list(string), 'Paths that are not resources; a trailing * matches any suffix.'),
})
export type PolicyRule = Infer<typeof policyRule>

const aggregationRule = object(
  'io.k8s.api.rbac.v1.AggregationRule',
  'Selects the cluster roles whose rules this role contains.',
  {
    clusterRoleSelectors: opt(1, list(labelSelector), 'Selectors; a role that matches one of them is included.'),
  },
)

const subject = object(
  'io.k8s.api.rbac.v1.Subject',
  'A user, a group or a service account.',
  {
    kind: req(1, string, 'User, Group or ServiceAccount.'),
    apiGroup: opt(2, string, 'rbac.authorization.k8s.io for users and groups; empty for service accounts.'),
    name: req(3, string, 'Name of the subject.'),
    namespace: opt(4, string, 'Namespace of a service account.'),
  },
  { atomic: true },
)
export type Subject = Infer<typeof subject>

export const roleRef = object(
  'io.k8s.api.rbac.v1.RoleRef',
  'The role that a binding grants.',
  {
    apiGroup: req(1, string, 'rbac.authorization.k8s.io.'),
    kind: req(2, string, 'Role or ClusterRole.'),
    name: req(3, string, 'Name of the role.'),
  },
  { atomic: true },
)
export type RoleRef = Infer<typeof roleRef>

export const role = object('io.k8s.api.rbac.v1.Role', 'Rules within one namespace.', {
  metadata: req(1, objectMeta, 'Standard object metadata.'),
  rules: req(2, list(policyRule), 'The rules of the role.'),
})
export type Role = Infer<typeof role>

export const clusterRole = object(
  'io.k8s.api.rbac.v1.ClusterRole',
  'Rules that can be granted in the whole cluster or in one namespace.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    rules: req(2, list(policyRule), 'The rules of the role. The server sets them if the role has an aggregation rule.'),
    aggregationRule: ptr(3, aggregationRule, 'Selects other cluster roles whose rules this role contains.'),
  },
)
export type ClusterRole = Infer<typeof clusterRole>

const bindingFields = {
  metadata: req(1, objectMeta, 'Standard object metadata.'),
  subjects: opt(2, list(subject), 'The subjects that get the rules of the role.'),
  roleRef: req(3, roleRef, 'The role; cannot be changed.'),
}

export const roleBinding = object(
  'io.k8s.api.rbac.v1.RoleBinding',
  'Grants a role, or a cluster role within one namespace, to subjects.',
  bindingFields,
)
export type RoleBinding = Infer<typeof roleBinding>

export const clusterRoleBinding = object(
  'io.k8s.api.rbac.v1.ClusterRoleBinding',
  'Grants a cluster role to subjects.',
  bindingFields,
)
export type ClusterRoleBinding = Infer<typeof clusterRoleBinding>
