// The users of the components that run in the server process, and the roles `stowage:COMPONENT` that grant them the rules
// of component-rules.ts. Rules with the namespace `own` apply in kube-system.
import { type PolicyRule, RBAC_GROUP, type Subject } from '../../api/kinds/rbac/rbac-schema.ts'
import { AUTHENTICATED_GROUP, accountUser, type UserInfo } from '../security/index.ts'
import { type Component, type ComponentRule, rulesOf } from './component-rules.ts'

const KUBE_SYSTEM = 'kube-system'

/** The components that run in the server process. The node agents have the identities of their nodes. */
export type InProcessComponent = Exclude<Component, 'capacity-templates' | 'health-monitor' | 'leaks' | 'node' | 'sdk'>

/** Service accounts in kube-system. If Kubernetes has the same controller, the account has the name that Kubernetes uses. */
const ACCOUNTS: Readonly<Record<Exclude<InProcessComponent, 'manager' | 'scheduler'>, string>> = {
  'account-tokens': 'tokens-controller',
  attacher: 'stowage-attacher',
  attaching: 'attachdetach-controller',
  'auto-growing': 'stowage-auto-growing',
  binding: 'persistent-volume-binder',
  'bootstrap-signer': 'bootstrap-signer',
  'capacity-cleanup': 'stowage-capacity-cleanup',
  certificates: 'certificate-controller',
  'driver-setup': 'stowage-driver-setup',
  ephemeral: 'ephemeral-volume-controller',
  garbage: 'generic-garbage-collector',
  'lost-volumes': 'stowage-lost-volumes',
  namespaces: 'namespace-controller',
  'node-lifecycle': 'node-controller',
  'node-topology': 'stowage-node-topology',
  protection: 'stowage-protection-controller',
  provisioner: 'stowage-provisioner',
  quota: 'resourcequota-controller',
  resizer: 'stowage-resizer',
  'root-ca': 'root-ca-cert-publisher',
  'service-accounts': 'service-account-controller',
  'stateful-sets': 'statefulset-controller',
  'token-cleaner': 'token-cleaner',
}
/** Users that are not service accounts. The manager reads for all controllers, as kube-controller-manager does. */
const USERS = { manager: 'system:kube-controller-manager', scheduler: 'system:kube-scheduler' } as const

export const IN_PROCESS_COMPONENTS = [
  ...Object.keys(ACCOUNTS),
  ...Object.keys(USERS),
].sort() as readonly InProcessComponent[]

export const isInProcess = (component: Component): component is InProcessComponent =>
  (IN_PROCESS_COMPONENTS as readonly Component[]).includes(component)

/** Returns the user as which a component in the server process makes its requests. */
export function userOf(component: InProcessComponent): UserInfo {
  if (component === 'manager' || component === 'scheduler')
    return { name: USERS[component], groups: [AUTHENTICATED_GROUP] }
  return accountUser(KUBE_SYSTEM, ACCOUNTS[component])
}

const subjectOf = (component: InProcessComponent): Subject =>
  component === 'manager' || component === 'scheduler'
    ? { kind: 'User', apiGroup: RBAC_GROUP, name: USERS[component] }
    : { kind: 'ServiceAccount', name: ACCOUNTS[component], namespace: KUBE_SYSTEM }

/** The rules of a role. */
export interface RoleRules {
  /** The role's namespace. Absent for a cluster role. */
  readonly namespace?: string
  readonly rules: readonly PolicyRule[]
}

/** Returns the rules by scope: the cluster first, then each namespace. Scopes without rules are omitted. */
export function roleRulesOf(rules: readonly ComponentRule[], ownNamespace: string): RoleRules[] {
  const namespaces = [...new Set(rules.flatMap(({ namespace }) => namespace ?? []))].sort().reverse()
  return [undefined, ...namespaces].flatMap((scope) => {
    const scopedRules = rules.filter(({ namespace }) => namespace === scope)
    if (scopedRules.length === 0) return []
    const policyRules = toPolicyRules(scopedRules)
    return [scope ? { namespace: scope === 'own' ? ownNamespace : scope, rules: policyRules } : { rules: policyRules }]
  })
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'approve', 'sign']

/**
 * Merges rules, so that each resource is in one policy rule, and resources of a group with the same verbs share one. Rules with
 * names are merged with those of the same names only.
 */
function toPolicyRules(rules: readonly ComponentRule[]): PolicyRule[] {
  const mergedResources = new Map<string, { id: string; names?: readonly string[]; verbs: Set<string> }>()
  for (const { verbs, resources, names } of rules) {
    for (const id of resources) {
      const key = `${id} ${names?.join() ?? ''}`
      const resource = mergedResources.get(key) ?? { id, ...(names ? { names } : {}), verbs: new Set() }
      for (const verb of verbs) resource.verbs.add(verb)
      mergedResources.set(key, resource)
    }
  }
  const policyRules = new Map<string, PolicyRule & { resources: string[] }>()
  for (const [, { id, names, verbs }] of [...mergedResources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { group, resource } = parseResource(id)
    const sortedVerbs = VERBS.filter((verb) => verbs.has(verb))
    const key = `${group} ${sortedVerbs.join()} ${names?.join() ?? ''}`
    const policyRule = policyRules.get(key) ?? {
      apiGroups: [group],
      resources: [],
      verbs: sortedVerbs,
      ...(names ? { resourceNames: [...names] } : {}),
    }
    policyRule.resources.push(resource)
    policyRules.set(key, policyRule)
  }
  const pathRules = rules.flatMap(({ verbs, paths }) =>
    paths ? [{ verbs: [...verbs], nonResourceURLs: [...paths] }] : [],
  )
  const sortedRules = [...policyRules.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, policyRule]) => policyRule)
  return [...sortedRules, ...pathRules]
}

/** `leases.coordination.k8s.io` → group `coordination.k8s.io`, resource `leases`; `pods/status` → group ``. */
export function parseResource(id: string): { group: string; resource: string } {
  if (id === '*') return { group: '*', resource: '*' }
  const [path = '', subresource] = id.split('/')
  const [plural = '', ...group] = path.split('.')
  return { group: group.join('.'), resource: subresource ? `${plural}/${subresource}` : plural }
}

const roleName = (component: InProcessComponent): string => `stowage:${component}`

/** The roles of the components in the server process. */
export const COMPONENT_ROLES = IN_PROCESS_COMPONENTS.flatMap((component) =>
  roleRulesOf(rulesOf(component), KUBE_SYSTEM).map((role) => ({ name: roleName(component), ...role })),
)

export const COMPONENT_BINDINGS = IN_PROCESS_COMPONENTS.flatMap((component) =>
  roleRulesOf(rulesOf(component), KUBE_SYSTEM).map(({ namespace }) => ({
    name: roleName(component),
    role: roleName(component),
    subjects: [subjectOf(component)],
    ...(namespace ? { namespace } : {}),
  })),
)
