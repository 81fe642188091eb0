// The roles and bindings that the server creates. Names and rules are those of Kubernetes, without the rules that a storage
// control plane does not need. Stowage adds rules for its own resources, the role `stowage:viewer`, the roles of the
// components in the server process (component-roles.ts) and the bindings of joining nodes (certificate-policy.ts).
import { STOWAGE_GROUP } from '../../api/kinds/operation/operation.ts'
import type { PolicyRule, Subject } from '../../api/kinds/rbac/rbac-schema.ts'
import { RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import type { Resource } from '../resources.ts'
import {
  ACCOUNTS_GROUP,
  AUTHENTICATED_GROUP,
  MASTERS_GROUP,
  UNAUTHENTICATED_GROUP,
  VIEWERS_GROUP,
} from '../security/index.ts'
import { CERTIFICATE_BINDINGS, CERTIFICATE_ROLES } from './certificate-policy.ts'
import { COMPONENT_BINDINGS, COMPONENT_ROLES } from './component-roles.ts'

export interface BootstrapRole {
  readonly name: string
  /** A role's namespace. Absent for a cluster role. */
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly rules: readonly PolicyRule[]
  /** The label of the cluster roles whose rules this role aggregates. */
  readonly aggregatesLabel?: string
}

export interface BootstrapBinding {
  readonly name: string
  /** The namespace of a role binding. Absent for a cluster role binding. */
  readonly namespace?: string
  /** Name of the role in this namespace, or of the cluster role, that the binding grants. */
  readonly role: string
  readonly subjects: readonly Subject[]
}

const READ = ['get', 'list', 'watch']
const UPDATE = ['update', 'patch']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']

const CORE = ''
const APPS = 'apps'
const STORAGE = 'storage.k8s.io'
const COORDINATION = 'coordination.k8s.io'
const AUTHENTICATION = 'authentication.k8s.io'
const AUTHORIZATION = 'authorization.k8s.io'
const CERTIFICATES = 'certificates.k8s.io'

const allow = (verbs: readonly string[], group: string, ...resources: string[]): PolicyRule => ({
  verbs: [...verbs],
  apiGroups: [group],
  resources,
})
const allowPaths = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs })

const WRITE_EVENTS: PolicyRule = {
  verbs: ['create', 'patch', 'update'],
  apiGroups: [CORE, 'events.k8s.io'],
  resources: ['events'],
}
const DELEGATE_AUTH: readonly PolicyRule[] = [
  allow(['create'], AUTHENTICATION, 'tokenreviews'),
  allow(['create'], AUTHORIZATION, 'subjectaccessreviews'),
]

const aggregationLabel = (role: string) => `${RBAC_GROUP}/aggregate-to-${role}`
const aggregationLabels = (role: string) => ({ [aggregationLabel(role)]: 'true' })

const PUBLIC_PATHS = ['/healthz', '/livez', '/readyz', '/version', '/version/']

const VIEW_RULES: readonly PolicyRule[] = [
  allow(
    READ,
    CORE,
    'bindings',
    'configmaps',
    'endpoints',
    'events',
    'limitranges',
    'namespaces',
    'namespaces/status',
    'persistentvolumeclaims',
    'persistentvolumeclaims/status',
    'pods',
    'pods/log',
    'pods/status',
    'resourcequotas',
    'resourcequotas/status',
    'serviceaccounts',
    'services',
    'services/status',
  ),
  allow(READ, APPS, 'controllerrevisions', 'statefulsets', 'statefulsets/scale', 'statefulsets/status'),
  allow(READ, 'discovery.k8s.io', 'endpointslices'),
  allow(READ, STOWAGE_GROUP, 'operations'),
  allow(READ, 'policy', 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
]

const EDIT_RULES: readonly PolicyRule[] = [
  allow(READ, CORE, 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'),
  allow(['impersonate'], CORE, 'serviceaccounts'),
  allow(WRITE, CORE, 'pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'),
  allow(['create'], CORE, 'pods/eviction'),
  allow(WRITE, CORE, 'configmaps', 'events', 'persistentvolumeclaims', 'secrets', 'serviceaccounts', 'services'),
  allow(['create'], CORE, 'serviceaccounts/token'),
  allow(WRITE, APPS, 'statefulsets', 'statefulsets/scale'),
  allow(WRITE, 'policy', 'poddisruptionbudgets'),
  allow([...READ, ...WRITE], COORDINATION, 'leases'),
]

export const NODE_RULES: readonly PolicyRule[] = [
  allow(['create'], AUTHENTICATION, 'tokenreviews'),
  allow(['create'], AUTHORIZATION, 'localsubjectaccessreviews', 'subjectaccessreviews'),
  allow(READ, CORE, 'services'),
  allow(['create', ...READ], CORE, 'nodes'),
  allow(UPDATE, CORE, 'nodes', 'nodes/status'),
  WRITE_EVENTS,
  allow(READ, CORE, 'pods'),
  allow(['create', 'delete'], CORE, 'pods'),
  allow(UPDATE, CORE, 'pods/status'),
  allow(['create'], CORE, 'pods/eviction'),
  allow(READ, CORE, 'configmaps', 'secrets'),
  allow(['get'], CORE, 'persistentvolumeclaims', 'persistentvolumes'),
  allow(['get', ...UPDATE], CORE, 'persistentvolumeclaims/status'),
  allow(['get'], CORE, 'endpoints', 'serviceaccounts'),
  allow(['create', ...READ], CERTIFICATES, 'certificatesigningrequests'),
  allow(['create', 'delete', 'get', ...UPDATE], COORDINATION, 'leases'),
  allow(['get'], STORAGE, 'volumeattachments'),
  allow(['create'], CORE, 'serviceaccounts/token'),
  allow(READ, STORAGE, 'csidrivers'),
  allow(['create', 'delete', 'get', ...UPDATE], STORAGE, 'csinodes'),
  allow(READ, 'node.k8s.io', 'runtimeclasses'),
  allow(['create'], STOWAGE_GROUP, 'operationreports'),
]

const SCHEDULER_RULES: readonly PolicyRule[] = [
  WRITE_EVENTS,
  allow(['create'], COORDINATION, 'leases'),
  { ...allow(['get', 'list', 'update', 'watch'], COORDINATION, 'leases'), resourceNames: ['kube-scheduler'] },
  allow(
    READ,
    CORE,
    'namespaces',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
    'replicationcontrollers',
    'services',
  ),
  allow(['delete', ...READ], CORE, 'pods'),
  allow(['create'], CORE, 'bindings', 'pods/binding'),
  allow(UPDATE, CORE, 'pods/status'),
  allow(READ, 'apps', 'replicasets', 'statefulsets'),
  allow(READ, 'policy', 'poddisruptionbudgets'),
  ...DELEGATE_AUTH,
  allow(READ, STORAGE, 'csidrivers', 'csinodes', 'csistoragecapacities', 'volumeattachments'),
]

/** The rules of kube-controller-manager itself. Its controllers run as service accounts. */
const CONTROLLER_MANAGER_RULES: readonly PolicyRule[] = [
  WRITE_EVENTS,
  allow(['create'], COORDINATION, 'leases'),
  { ...allow(['get', 'update'], COORDINATION, 'leases'), resourceNames: ['kube-controller-manager'] },
  allow(['create'], CORE, 'secrets', 'serviceaccounts', 'serviceaccounts/token'),
  allow(['delete'], CORE, 'secrets'),
  allow(['get'], CORE, 'configmaps', 'namespaces', 'secrets', 'serviceaccounts'),
  allow(['update'], CORE, 'secrets', 'serviceaccounts'),
  ...DELEGATE_AUTH,
  allow(['list', 'watch'], '*', '*'),
]

/** The rules of the service accounts in kube-system under which controllers run. */
const CONTROLLER_RULES: Readonly<Record<string, readonly PolicyRule[]>> = {
  'attachdetach-controller': [
    allow(['list', 'watch'], CORE, 'persistentvolumeclaims', 'persistentvolumes', 'pods'),
    allow(READ, CORE, 'nodes'),
    allow(UPDATE, CORE, 'nodes/status'),
    WRITE_EVENTS,
    allow(['create', 'delete', ...READ], STORAGE, 'volumeattachments'),
    allow(READ, STORAGE, 'csidrivers', 'csinodes'),
  ],
  'clusterrole-aggregation-controller': [allow(['escalate', ...READ, ...UPDATE], RBAC_GROUP, 'clusterroles')],
  'ephemeral-volume-controller': [
    allow(READ, CORE, 'pods'),
    allow(['update'], CORE, 'pods/finalizers'),
    allow(['create', ...READ], CORE, 'persistentvolumeclaims'),
    WRITE_EVENTS,
  ],
  'expand-controller': [
    allow([...READ, ...UPDATE], CORE, 'persistentvolumes'),
    allow(UPDATE, CORE, 'persistentvolumeclaims/status'),
    allow(READ, CORE, 'persistentvolumeclaims'),
    WRITE_EVENTS,
  ],
  'generic-garbage-collector': [allow(['delete', ...READ, ...UPDATE], '*', '*'), WRITE_EVENTS],
  'namespace-controller': [
    allow(['delete', ...READ], CORE, 'namespaces'),
    allow(['update'], CORE, 'namespaces/finalize', 'namespaces/status'),
    allow(['delete', 'deletecollection', ...READ], '*', '*'),
  ],
  'node-controller': [
    allow(['delete', ...READ, ...UPDATE], CORE, 'nodes'),
    allow(UPDATE, CORE, 'nodes/status', 'pods/status'),
    allow(['delete', ...READ], CORE, 'pods'),
    WRITE_EVENTS,
  ],
  'persistent-volume-binder': [
    allow(['create', 'delete', 'update', ...READ], CORE, 'persistentvolumes'),
    allow(['update'], CORE, 'persistentvolumeclaims/status', 'persistentvolumes/status'),
    allow(['update', ...READ], CORE, 'persistentvolumeclaims'),
    allow(['create', 'delete', ...READ], CORE, 'pods'),
    allow(READ, STORAGE, 'storageclasses'),
    allow(['list', 'watch'], CORE, 'nodes'),
    WRITE_EVENTS,
    allow(['watch'], CORE, 'events'),
  ],
  'pod-garbage-collector': [
    allow(['delete', 'list', 'watch'], CORE, 'pods'),
    allow(READ, CORE, 'nodes'),
    allow(['patch'], CORE, 'pods/status'),
  ],
  'pv-protection-controller': [allow(['update', ...READ], CORE, 'persistentvolumes'), WRITE_EVENTS],
  'pvc-protection-controller': [
    allow(['update', ...READ], CORE, 'persistentvolumeclaims'),
    allow(['update'], CORE, 'persistentvolumeclaims/status'),
    allow(READ, CORE, 'pods'),
    WRITE_EVENTS,
  ],
  'resourcequota-controller': [
    allow(['list', 'watch'], '*', '*'),
    allow(['update'], CORE, 'resourcequotas/status'),
    WRITE_EVENTS,
  ],
  'root-ca-cert-publisher': [allow(['create', 'update'], CORE, 'configmaps'), WRITE_EVENTS],
  'service-account-controller': [allow(['create'], CORE, 'serviceaccounts'), WRITE_EVENTS],
  'statefulset-controller': [
    allow(['create', 'delete', ...READ, ...UPDATE], CORE, 'pods'),
    allow(READ, APPS, 'statefulsets'),
    allow(['update'], APPS, 'statefulsets/finalizers', 'statefulsets/status'),
    allow(['create', 'delete', ...READ, ...UPDATE], APPS, 'controllerrevisions'),
    allow(['create', 'delete', 'update', ...READ], CORE, 'persistentvolumeclaims'),
    allow(['update'], CORE, 'pods/finalizers'),
    WRITE_EVENTS,
  ],
  'legacy-service-account-token-cleaner': [
    { ...allow(['get'], CORE, 'configmaps'), resourceNames: ['kube-apiserver-legacy-service-account-token-tracking'] },
    allow(['delete', 'patch'], CORE, 'secrets'),
  ],
  'ttl-controller': [allow([...UPDATE, 'list', 'watch'], CORE, 'nodes'), WRITE_EVENTS],
  'volumeattributesclass-protection-controller': [
    allow(READ, CORE, 'persistentvolumeclaims', 'persistentvolumes'),
    allow(['update', ...READ], STORAGE, 'volumeattributesclasses'),
    WRITE_EVENTS,
  ],
}

/** Returns the roles and cluster roles. The rules of `stowage:viewer` name these resources, except secrets and reviews. */
export const bootstrapRoles = (resources: readonly Resource[]): readonly BootstrapRole[] => [
  {
    name: 'cluster-admin',
    rules: [allow(['*'], '*', '*'), { verbs: ['*'], nonResourceURLs: ['*'] }],
  },
  {
    name: 'system:discovery',
    rules: [allowPaths(...PUBLIC_PATHS, '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*')],
  },
  { name: 'system:public-info-viewer', rules: [allowPaths(...PUBLIC_PATHS)] },
  {
    name: ISSUER_DISCOVERY,
    rules: [
      allowPaths(
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [
      allowPaths(
        ...['/healthz', '/livez', '/readyz'].flatMap((path) => [path, `${path}/*`]),
        '/metrics',
        '/metrics/slis',
      ),
      allow(['get'], CORE, 'nodes/metrics'),
    ],
  },
  {
    name: 'system:basic-user',
    rules: [
      allow(['create'], AUTHORIZATION, 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
      allow(['create'], STOWAGE_GROUP, 'timelinereviews'), // the review also requires permission to get the object
      allow(['create'], AUTHENTICATION, 'selfsubjectreviews'),
    ],
  },
  { name: 'admin', rules: [], aggregatesLabel: aggregationLabel('admin') },
  { name: 'edit', labels: aggregationLabels('admin'), rules: [], aggregatesLabel: aggregationLabel('edit') },
  { name: 'view', labels: aggregationLabels('edit'), rules: [], aggregatesLabel: aggregationLabel('view') },
  {
    name: 'system:aggregate-to-admin',
    labels: aggregationLabels('admin'),
    rules: [
      allow(['create'], AUTHORIZATION, 'localsubjectaccessreviews'),
      allow([...READ, ...WRITE], RBAC_GROUP, 'rolebindings', 'roles'),
    ],
  },
  { name: 'system:aggregate-to-edit', labels: aggregationLabels('edit'), rules: EDIT_RULES },
  { name: 'system:aggregate-to-view', labels: aggregationLabels('view'), rules: VIEW_RULES },
  { name: 'system:auth-delegator', rules: DELEGATE_AUTH },
  { name: 'system:node', rules: NODE_RULES },
  {
    name: 'system:node-bootstrapper',
    rules: [allow(['create', ...READ], CERTIFICATES, 'certificatesigningrequests')],
  },
  {
    name: 'system:persistent-volume-provisioner',
    rules: [
      allow(['create', 'delete', ...READ], CORE, 'persistentvolumes'),
      allow(['update', ...READ], CORE, 'persistentvolumeclaims'),
      allow(READ, STORAGE, 'storageclasses'),
      allow(['watch'], CORE, 'events'),
      WRITE_EVENTS,
    ],
  },
  { name: 'system:kube-controller-manager', rules: CONTROLLER_MANAGER_RULES },
  { name: 'system:kube-scheduler', rules: SCHEDULER_RULES },
  {
    name: 'system:volume-scheduler',
    rules: [
      allow([...READ, ...UPDATE], CORE, 'persistentvolumeclaims', 'persistentvolumes'),
      allow(READ, STORAGE, 'storageclasses'),
    ],
  },
  { name: VIEWER_ROLE, rules: [...viewerRules(resources), allowPaths('*')] },
  ...CERTIFICATE_ROLES,
  ...Object.entries(CONTROLLER_RULES).map(([name, rules]) => ({ name: `system:controller:${name}`, rules })),
  ...COMPONENT_ROLES,
]

const ISSUER_DISCOVERY = 'system:service-account-issuer-discovery'
const VIEWER_ROLE = 'stowage:viewer'

function viewerRules(resources: readonly Resource[]): PolicyRule[] {
  const pluralsByGroup = new Map<string, Set<string>>()
  for (const { kind, group, plural } of resources) {
    if (kind.isReview || (group === CORE && plural === 'secrets')) continue
    const plurals = pluralsByGroup.get(group) ?? new Set()
    plurals.add(plural)
    if (kind.status) plurals.add(`${plural}/status`)
    if (group === CORE && plural === 'pods') plurals.add('pods/log')
    pluralsByGroup.set(group, plurals)
  }
  return [...pluralsByGroup].map(([group, plurals]) => allow(READ, group, ...[...plurals].sort()))
}

const groupSubject = (name: string): Subject => ({ kind: 'Group', apiGroup: RBAC_GROUP, name })
const userSubject = (name: string): Subject => ({ kind: 'User', apiGroup: RBAC_GROUP, name })
const bindTo = (role: string, ...subjects: Subject[]): BootstrapBinding => ({ name: role, role, subjects })

export const BOOTSTRAP_BINDINGS: readonly BootstrapBinding[] = [
  bindTo('cluster-admin', groupSubject(MASTERS_GROUP)),
  bindTo('system:discovery', groupSubject(AUTHENTICATED_GROUP)),
  bindTo('system:public-info-viewer', groupSubject(AUTHENTICATED_GROUP), groupSubject(UNAUTHENTICATED_GROUP)),
  bindTo('system:basic-user', groupSubject(AUTHENTICATED_GROUP)),
  bindTo(ISSUER_DISCOVERY, groupSubject(ACCOUNTS_GROUP)),
  bindTo('system:monitoring', groupSubject('system:monitoring')),
  bindTo('system:kube-controller-manager', userSubject('system:kube-controller-manager')),
  bindTo('system:kube-scheduler', userSubject('system:kube-scheduler')),
  bindTo('system:volume-scheduler', userSubject('system:kube-scheduler')),
  { name: VIEWERS_GROUP, role: VIEWER_ROLE, subjects: [groupSubject(VIEWERS_GROUP)] },
  ...CERTIFICATE_BINDINGS,
  ...Object.keys(CONTROLLER_RULES).map((name) =>
    bindTo(`system:controller:${name}`, { kind: 'ServiceAccount', name, namespace: 'kube-system' }),
  ),
  ...COMPONENT_BINDINGS,
]
