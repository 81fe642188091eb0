// The rules of every component. The roles `stowage:COMPONENT`, the output of `stowage rbac print` and
// docs/reference/roles.md are generated from them, and the tests of components run with them. A test fails if a
// component sends a request that no rule here grants, or if no test uses a rule.
import {
  API_CLIENT_SIGNER,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
} from '../../api/kinds/certificate-signing-request/signer-name.ts'

/** Resources with the same verbs. */
export interface ComponentRule {
  readonly verbs: readonly string[]
  /** As in `kubectl auth can-i`: `pods/status`, `leases.coordination.k8s.io`, or `*` for all. */
  readonly resources: readonly string[]
  /** The names of the objects. Absent for all objects. */
  readonly names?: readonly string[]
  /** Paths that are not resources. Such a rule has no resources. */
  readonly paths?: readonly string[]
  /** The feature that needs the rule. Absent if the component always needs it. */
  readonly feature?: string
  /** The namespace in which the rule holds; `own` is that of the component. Absent for the whole cluster. */
  readonly namespace?: 'own' | 'kube-node-lease' | 'kube-public'
}

type RuleScope = Pick<ComponentRule, 'feature' | 'namespace' | 'names'>

/** Words are separated by spaces: `rule('list watch', 'pods nodes')`. */
const rule = (verbs: string, resources: string, scope: RuleScope = {}): ComponentRule => ({
  verbs: verbs.split(' '),
  resources: resources.split(' '),
  ...scope,
})

const RECORD_EVENTS = rule('create patch', 'events')
const ELECT_LEADER = rule('get create update patch', 'leases.coordination.k8s.io', {
  feature: 'leader-election',
  namespace: 'own',
})
/** Writes of several objects in one transaction. Only Stowage serves commits; other API servers receive single writes. */
const COMMIT = rule('create', 'commits.stowage.dev', { feature: 'transactions' })
/** Reports of a process's operations. Only Stowage serves them. */
const REPORT_OPERATIONS = rule('create', 'operationreports.stowage.dev', { feature: 'operations' })

/** The controllers of `stowage controllers`, by their names in --controllers. */
const CONTROLLER_RULES = {
  attaching: [
    rule('list watch', 'nodes persistentvolumeclaims persistentvolumes pods'),
    rule('list watch', 'csidrivers.storage.k8s.io csinodes.storage.k8s.io'),
    rule('get list watch create delete', 'volumeattachments.storage.k8s.io'),
    rule('patch', 'nodes/status'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  // The usage of volumes is in the metrics of a Stowage server; other servers forward requests to the kubelets.
  'auto-growing': [
    rule('list watch patch', 'persistentvolumeclaims'),
    rule('list watch', 'persistentvolumes csidrivers.storage.k8s.io csistoragecapacities.storage.k8s.io'),
    rule('list watch', 'storageclasses.storage.k8s.io'),
    { verbs: ['get'], resources: [], paths: ['/metrics'], feature: 'server-metrics' },
    rule('list watch', 'pods', { feature: 'kubelet-stats' }),
    rule('get', 'nodes/proxy', { feature: 'kubelet-stats' }),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  binding: [
    rule('get list watch patch', 'persistentvolumeclaims'),
    rule('get list watch patch delete', 'persistentvolumes'),
    rule('patch', 'persistentvolumeclaims/status persistentvolumes/status'),
    rule('list watch', 'pods storageclasses.storage.k8s.io'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  'capacity-cleanup': [
    rule('get list watch', 'csinodes.storage.k8s.io'),
    rule('list watch delete', 'csistoragecapacities.storage.k8s.io'),
    ELECT_LEADER,
    REPORT_OPERATIONS,
  ],
  ephemeral: [
    rule('list watch', 'pods'),
    rule('get list watch create', 'persistentvolumeclaims'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  garbage: [rule('get list watch patch delete', '*'), REPORT_OPERATIONS],
  'lost-volumes': [
    rule('get list watch', 'nodes'),
    rule('get list watch delete', 'persistentvolumeclaims'),
    rule('patch', 'persistentvolumeclaims/status'),
    rule('get list watch patch delete', 'persistentvolumes'),
    rule('list watch', 'storageclasses.storage.k8s.io volumeattachments.storage.k8s.io'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  namespaces: [
    rule('list watch delete', '*'),
    rule('update', 'namespaces/finalize'),
    rule('patch', 'namespaces/status'),
    REPORT_OPERATIONS,
  ],
  'node-lifecycle': [
    rule('get list watch patch', 'nodes'),
    rule('list watch delete', 'pods'),
    rule('patch', 'nodes/status pods/status'),
    rule('get list watch delete', 'leases.coordination.k8s.io', { namespace: 'kube-node-lease' }),
    rule('list watch patch', 'persistentvolumeclaims'),
    rule('list watch', 'persistentvolumes volumeattachments.storage.k8s.io'),
    rule('list watch delete', 'csistoragecapacities.storage.k8s.io'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  'node-topology': [
    rule('get list watch', 'nodes'),
    rule('patch', 'nodes/status'),
    rule('list watch', 'persistentvolumes csinodes.storage.k8s.io'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
  protection: [
    rule('list watch patch', 'persistentvolumeclaims persistentvolumes volumeattributesclasses.storage.k8s.io'),
    rule('list watch', 'pods'),
    REPORT_OPERATIONS,
  ],
  quota: [
    rule('list', '*'),
    rule('watch', 'resourcequotas'),
    rule('update', 'resourcequotas/status'),
    REPORT_OPERATIONS,
  ],
  'root-ca': [rule('list watch', 'namespaces'), rule('list watch create update', 'configmaps'), REPORT_OPERATIONS],
  'service-accounts': [
    rule('list watch', 'namespaces'),
    rule('list watch create', 'serviceaccounts'),
    REPORT_OPERATIONS,
  ],
  'stateful-sets': [
    rule('get list watch', 'statefulsets.apps'),
    rule('patch', 'statefulsets.apps/status'),
    rule('get list watch create patch delete', 'controllerrevisions.apps'),
    rule('list watch create patch delete', 'pods'),
    rule('list watch create patch', 'persistentvolumeclaims'),
    RECORD_EVENTS,
    COMMIT,
    REPORT_OPERATIONS,
  ],
} satisfies Readonly<Record<string, readonly ComponentRule[]>>

const REQUESTS = 'certificatesigningrequests.certificates.k8s.io'

/** Controllers that use the keys of the server, or serve its authenticators. They run in its process only. */
const SERVER_CONTROLLER_RULES = {
  'account-tokens': [rule('get watch', 'serviceaccounts'), rule('watch update delete', 'secrets')],
  'bootstrap-signer': [
    rule('watch', 'secrets', { namespace: 'own' }),
    rule('watch update', 'configmaps', { namespace: 'kube-public', names: ['cluster-info'] }),
  ],
  certificates: [
    rule('watch delete', REQUESTS),
    rule('update', `${REQUESTS}/approval ${REQUESTS}/status`),
    rule('approve', 'signers.certificates.k8s.io', { names: [KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER] }),
    rule('sign', 'signers.certificates.k8s.io', {
      names: [API_CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER],
    }),
  ],
  'token-cleaner': [rule('watch delete', 'secrets', { namespace: 'own' })],
} satisfies Readonly<Record<string, readonly ComponentRule[]>>

const SCHEDULER_RULES = [
  rule('get list watch', 'pods'),
  rule('create', 'pods/binding'),
  rule('patch', 'pods/status'),
  rule('list watch patch', 'persistentvolumeclaims persistentvolumes'),
  rule('list watch', 'nodes'),
  rule(
    'list watch',
    'csidrivers.storage.k8s.io csinodes.storage.k8s.io csistoragecapacities.storage.k8s.io ' +
      'storageclasses.storage.k8s.io volumeattachments.storage.k8s.io',
  ),
  rule('delete', 'persistentvolumeclaims', { feature: 'stranded-claims' }),
  rule('delete', 'pods', { feature: 'preemption' }),
  RECORD_EVENTS,
  ELECT_LEADER,
  COMMIT,
  REPORT_OPERATIONS,
]

const PROVISION = [
  rule('get list watch create patch delete', 'persistentvolumes'),
  rule('get list watch patch', 'persistentvolumeclaims'),
  rule('list watch', 'storageclasses.storage.k8s.io volumeattachments.storage.k8s.io'),
  RECORD_EVENTS,
  ELECT_LEADER,
  COMMIT,
  REPORT_OPERATIONS,
]

const SDK_RULES = [
  ...PROVISION,
  rule('patch', 'persistentvolumeclaims/status', { feature: 'expansion' }),
  rule('list watch', 'volumeattributesclasses.storage.k8s.io', { feature: 'attributes' }),
  rule('get', 'storageclasses.storage.k8s.io', { feature: 'attributes' }),
]

const PROVISIONER_RULES = [
  ...PROVISION,
  rule('patch', 'persistentvolumeclaims/status persistentvolumes/status', { feature: 'transactions' }),
  rule('list watch', 'csinodes.storage.k8s.io nodes', { feature: 'topology' }),
  rule('get list watch', 'volumeattributesclasses.storage.k8s.io', { feature: 'attributes' }),
  rule('get', 'secrets', { feature: 'secrets' }),
  rule('get list patch', 'volumesnapshots.snapshot.storage.k8s.io', { feature: 'snapshots' }),
  rule('get list watch', 'volumesnapshotcontents.snapshot.storage.k8s.io', { feature: 'snapshots' }),
  rule('list watch create patch delete', 'csistoragecapacities.storage.k8s.io', {
    feature: 'capacity',
    namespace: 'own',
  }),
  rule('get', 'pods replicasets.apps', { feature: 'capacity', namespace: 'own' }),
  rule('update', 'persistentvolumeclaims', { feature: 'release' }),
]

const RESIZER_RULES = [
  rule('get list watch patch', 'persistentvolumes'),
  rule('get list watch', 'persistentvolumeclaims'),
  rule('patch', 'persistentvolumeclaims/status'),
  rule('list watch', 'pods'),
  rule('list', 'events'),
  rule('list watch', 'volumeattributesclasses.storage.k8s.io', { feature: 'attributes' }),
  rule('get', 'storageclasses.storage.k8s.io', { feature: 'attributes' }),
  rule('get', 'secrets', { feature: 'secrets' }),
  rule('list watch', 'csidrivers.storage.k8s.io csistoragecapacities.storage.k8s.io', { feature: 'check-capacity' }),
  RECORD_EVENTS,
  ELECT_LEADER,
  COMMIT,
  REPORT_OPERATIONS,
]

const ATTACHER_RULES = [
  rule('list watch patch', 'persistentvolumes volumeattachments.storage.k8s.io'),
  rule('patch', 'volumeattachments.storage.k8s.io/status'),
  rule('list watch', 'csinodes.storage.k8s.io'),
  rule('get', 'secrets', { feature: 'secrets' }),
  ELECT_LEADER,
  COMMIT,
  REPORT_OPERATIONS,
]

const HEALTH_MONITOR_RULES = [
  rule('list watch', 'persistentvolumeclaims persistentvolumes'),
  rule('list', 'events'),
  RECORD_EVENTS,
  ELECT_LEADER,
  COMMIT,
]

const NODE_RULES = [
  rule('get list watch create patch', 'nodes'),
  rule('patch', 'nodes/status'),
  rule('list watch delete', 'pods'),
  rule('patch', 'pods/status'),
  rule('get list watch', 'persistentvolumeclaims persistentvolumes volumeattachments.storage.k8s.io'),
  rule('patch', 'persistentvolumeclaims/status'),
  rule('list watch', 'csidrivers.storage.k8s.io'),
  rule('get create update delete', 'csinodes.storage.k8s.io'),
  rule('get', 'configmaps secrets'),
  rule('create', 'serviceaccounts/token'),
  rule('get', 'volumeattributesclasses.storage.k8s.io', { feature: 'attributes' }),
  rule('get create update', 'leases.coordination.k8s.io', { namespace: 'kube-node-lease' }),
  rule('get create', 'certificatesigningrequests.certificates.k8s.io', { feature: 'commands' }),
  RECORD_EVENTS,
  COMMIT,
  REPORT_OPERATIONS,
]

/** The command `stowage capacity templates`. */
const CAPACITY_TEMPLATE_RULES = [
  rule('list', 'nodes persistentvolumes csinodes.storage.k8s.io storageclasses.storage.k8s.io'),
  rule('list create patch delete', 'csistoragecapacities.storage.k8s.io'),
]

/** The command `stowage leaks`. */
const LEAKS_RULES = [
  rule('list', 'persistentvolumeclaims persistentvolumes pods leases.coordination.k8s.io'),
  rule('list', 'csinodes.storage.k8s.io storageclasses.storage.k8s.io volumeattachments.storage.k8s.io'),
  rule('list', 'operations.stowage.dev', { feature: 'operations' }),
  rule('list', 'volumesnapshotcontents.snapshot.storage.k8s.io', { feature: 'snapshots' }),
  rule('create', 'persistentvolumes', { feature: 'adopt' }),
]

/** The caches and the leader election that the controllers of an API server process share. */
const MANAGER_RULES = [rule('watch', '*'), RECORD_EVENTS, ELECT_LEADER, COMMIT]

/** The objects that `stowage up --driver` derives from a driver's capabilities. */
const DRIVER_SETUP_RULES = [
  rule('get create patch delete', 'csidrivers.storage.k8s.io'),
  rule('list create patch delete', 'storageclasses.storage.k8s.io'),
  rule('list', 'persistentvolumes'),
]

export const COMPONENT_RULES = {
  ...CONTROLLER_RULES,
  ...SERVER_CONTROLLER_RULES,
  attacher: ATTACHER_RULES,
  'capacity-templates': CAPACITY_TEMPLATE_RULES,
  'driver-setup': DRIVER_SETUP_RULES,
  'health-monitor': HEALTH_MONITOR_RULES,
  leaks: LEAKS_RULES,
  manager: MANAGER_RULES,
  node: NODE_RULES,
  provisioner: PROVISIONER_RULES,
  resizer: RESIZER_RULES,
  scheduler: SCHEDULER_RULES,
  sdk: SDK_RULES,
} satisfies Readonly<Record<string, readonly ComponentRule[]>>

export type Component = keyof typeof COMPONENT_RULES
export type Controller = keyof typeof CONTROLLER_RULES
export type ServerController = keyof typeof SERVER_CONTROLLER_RULES

export const CONTROLLERS = Object.keys(CONTROLLER_RULES) as readonly Controller[]
export const SERVER_CONTROLLERS = Object.keys(SERVER_CONTROLLER_RULES) as readonly ServerController[]
export const rulesOf = (component: Component): readonly ComponentRule[] => COMPONENT_RULES[component]
