// The cluster roles and bindings with which nodes join and renew their certificates, and those of the controllers that sign
// certificates and delete expired tokens. Roles have the names of Kubernetes; the group of node tokens and its bindings are
// specific to Stowage.
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import { NODE_TOKEN_GROUP } from '../../api/kinds/secret/bootstrap-token-secret.ts'
import { NODES_GROUP } from '../node-authorizer/node-identity.ts'
import type { BootstrapBinding, BootstrapRole } from './bootstrap-policy.ts'

const GROUP = 'certificates.k8s.io'
const REQUESTS = 'certificatesigningrequests'
const NODE_CLIENT = `system:certificates.k8s.io:${REQUESTS}:nodeclient`
const SELF_NODE_CLIENT = `system:certificates.k8s.io:${REQUESTS}:selfnodeclient`
const SELF_NODE_SERVER = `system:certificates.k8s.io:${REQUESTS}:selfnodeserver`
const CONTROLLER = 'certificate-controller'

const allow = (verbs: string[], ...resources: string[]): PolicyRule => ({ verbs, apiGroups: [GROUP], resources })
const allowSigners = (verb: string, ...resourceNames: string[]): PolicyRule => ({
  ...allow([verb], 'signers'),
  resourceNames,
})

export const CERTIFICATE_ROLES: readonly BootstrapRole[] = [
  { name: NODE_CLIENT, rules: [allow(['create'], `${REQUESTS}/nodeclient`)] },
  { name: SELF_NODE_CLIENT, rules: [allow(['create'], `${REQUESTS}/selfnodeclient`)] },
  { name: SELF_NODE_SERVER, rules: [allow(['create'], `${REQUESTS}/selfnodeserver`)] },
  {
    name: `system:controller:${CONTROLLER}`,
    rules: [
      allow(['delete', 'get', 'list', 'watch'], REQUESTS),
      allow(['update'], `${REQUESTS}/approval`, `${REQUESTS}/status`),
      allowSigners('approve', 'kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving'),
      allowSigners(
        'sign',
        'kubernetes.io/kube-apiserver-client',
        'kubernetes.io/kube-apiserver-client-kubelet',
        'kubernetes.io/kubelet-serving',
        'kubernetes.io/legacy-unknown',
      ),
    ],
  },
  {
    name: 'system:controller:token-cleaner',
    rules: [{ verbs: ['delete', 'list', 'watch'], apiGroups: [''], resources: ['secrets'] }],
  },
]

const bindToGroup = (name: string, role: string, group: string): BootstrapBinding => ({
  name,
  role,
  subjects: [{ kind: 'Group', apiGroup: RBAC_GROUP, name: group }],
})
const bindToController = (name: string): BootstrapBinding => ({
  name: `system:controller:${name}`,
  role: `system:controller:${name}`,
  subjects: [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }],
})

export const CERTIFICATE_BINDINGS: readonly BootstrapBinding[] = [
  bindToGroup('stowage:node-bootstrap', 'system:node-bootstrapper', NODE_TOKEN_GROUP),
  bindToGroup('stowage:node-autoapprove-bootstrap', NODE_CLIENT, NODE_TOKEN_GROUP),
  bindToGroup('stowage:node-autoapprove-certificate-rotation', SELF_NODE_CLIENT, NODES_GROUP),
  bindToGroup('stowage:node-autoapprove-serving-certificate', SELF_NODE_SERVER, NODES_GROUP),
  bindToController(CONTROLLER),
  bindToController('token-cleaner'),
]
