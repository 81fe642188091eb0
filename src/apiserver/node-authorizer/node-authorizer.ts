// Authorizes the requests of nodes as the Kubernetes node authorizer does: a node may read and write its own objects, and
// read those that its pods name. Some writes, such as the status of Nodes and pods, are allowed here for every object;
// node-restriction.ts limits them to the objects of the node at admission.
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { requiredFieldValue } from '../../api/selectors.ts'
import { ruleAllows } from '../rbac/rule-match.ts'
import type { AuthorizationAttributes, Authorizer, Decision, ResourceAttributes } from '../security/index.ts'
import type { GraphResource, NodeGraph } from './node-graph.ts'
import { nodeNameOf } from './node-identity.ts'

export const NODE_LEASE_NAMESPACE = 'kube-node-lease'

/** Messages that the admission of the same objects also uses. */
export const LEASE_NAMESPACE_MESSAGE = `can only access leases in the "${NODE_LEASE_NAMESPACE}" system namespace`
export const LEASE_NAME_MESSAGE = 'can only access node lease with the same name as the requesting node'
export const CSI_NODE_NAME_MESSAGE = 'can only access CSINode with the same name as the requesting node'

export interface NodeAuthorizerOptions {
  readonly graph: NodeGraph
  /** The rules of system:node, for the resources that are the same for all nodes. */
  readonly rules: readonly PolicyRule[]
  /** Decides on requests of other users, and on requests of nodes that this authorizer does not allow. */
  readonly next: Authorizer
}

export function createNodeAuthorizer({ graph, rules, next }: NodeAuthorizerOptions): Authorizer {
  return {
    authorize(attributes) {
      const nodeName = nodeNameOf(attributes.user)
      if (nodeName === undefined) return next.authorize(attributes)
      const decision = authorizeNode(nodeName, attributes)
      if (decision.allowed) return decision
      const nextDecision = next.authorize(attributes)
      if (nextDecision.allowed) return nextDecision
      const reasons = [decision.reason, nextDecision.reason].filter((reason) => reason !== undefined)
      return reasons.length > 0 ? deny(reasons.join('\n')) : DENIED
    },
    rulesFor(user, namespace) {
      const rulesOfNext = next.rulesFor?.(user, namespace) ?? {
        resourceRules: [],
        nonResourceRules: [],
        incomplete: true,
      }
      if (nodeNameOf(user) === undefined) return rulesOfNext
      const evaluationError = 'node authorizer does not support user rule resolution'
      return { ...rulesOfNext, incomplete: true, evaluationError }
    },
  }

  function authorizeNode(nodeName: string, attributes: AuthorizationAttributes): Decision {
    if (nodeName === '') return deny(`unknown node for user ${JSON.stringify(attributes.user.name)}`)
    if (attributes.path === undefined) {
      const authorizeResource = RESOURCE_AUTHORIZERS[`${attributes.group}/${attributes.resource}`]
      if (authorizeResource) return authorizeResource({ graph, nodeName, attributes })
    }
    return rules.some((rule) => ruleAllows(rule, attributes)) ? ALLOWED : DENIED
  }
}

interface NodeRequest {
  readonly graph: NodeGraph
  readonly nodeName: string
  readonly attributes: ResourceAttributes
}

const ALLOWED: Decision = { allowed: true, reason: 'allowed for the node' }
const DENIED: Decision = { allowed: false }
const deny = (reason: string): Decision => ({ allowed: false, reason })

/** The resources of which a node may use only some objects, by `GROUP/RESOURCE`. */
const RESOURCE_AUTHORIZERS: Readonly<Record<string, (request: NodeRequest) => Decision>> = {
  '/secrets': (request) => authorizeRead(request, 'secrets'),
  '/configmaps': (request) => authorizeRead(request, 'configmaps'),
  '/persistentvolumeclaims': (request) =>
    request.attributes.subresource === 'status'
      ? authorizeClaimStatus(request)
      : authorizeGet(request, 'persistentvolumeclaims'),
  '/persistentvolumes': (request) => authorizeGet(request, 'persistentvolumes'),
  'storage.k8s.io/volumeattachments': (request) => authorizeGet(request, 'volumeattachments'),
  '/serviceaccounts': authorizeServiceAccount,
  'coordination.k8s.io/leases': authorizeLease,
  'storage.k8s.io/csinodes': authorizeCsiNode,
  '/nodes': authorizeOwnNode,
  '/pods': authorizePod,
}

function authorizeRelated({ graph, nodeName, attributes }: NodeRequest, resource: GraphResource): Decision {
  const { namespace = '', name } = attributes
  if (!name) return deny('No Object name found')
  return graph.isRelated(nodeName, { resource, namespace, name })
    ? ALLOWED
    : deny(`no relationship found between node '${nodeName}' and this object`)
}

function authorizeGet(request: NodeRequest, resource: GraphResource): Decision {
  const { verb, subresource } = request.attributes
  if (verb !== 'get') return deny('can only get individual resources of this type')
  if (subresource) return deny('cannot get subresource')
  return authorizeRelated(request, resource)
}

/** Allows a list or watch too, if it selects one object by name. */
function authorizeRead(request: NodeRequest, resource: GraphResource): Decision {
  const { verb, subresource, namespace } = request.attributes
  if (!isRead(verb)) return deny('can only read resources of this type')
  if (subresource) return deny('cannot read subresource')
  if (!namespace) return deny('can only read namespaced object of this type')
  return authorizeRelated(request, resource)
}

function authorizeClaimStatus(request: NodeRequest): Decision {
  const { verb } = request.attributes
  if (verb !== 'update' && verb !== 'patch') return deny('can only get/update/patch this type')
  return authorizeRelated(request, 'persistentvolumeclaims')
}

function authorizeServiceAccount(request: NodeRequest): Decision {
  const { verb, subresource, name } = request.attributes
  if (verb === 'get' && !subresource) return authorizeRead(request, 'serviceaccounts')
  if (verb !== 'create' || !name) return deny('can only create tokens for individual service accounts')
  if (subresource !== 'token') return deny('can only create token subresource of serviceaccount')
  return authorizeRelated(request, 'serviceaccounts')
}

function authorizeLease({ nodeName, attributes }: NodeRequest): Decision {
  const { verb, namespace, name } = attributes
  if (!OWN_OBJECT_VERBS.has(verb)) return deny('can only get, create, update, patch, or delete a node lease')
  if (namespace !== NODE_LEASE_NAMESPACE) return deny(LEASE_NAMESPACE_MESSAGE)
  if (verb !== 'create' && name !== nodeName) return deny(LEASE_NAME_MESSAGE)
  return ALLOWED
}

function authorizeCsiNode({ nodeName, attributes }: NodeRequest): Decision {
  const { verb, subresource, name } = attributes
  if (!OWN_OBJECT_VERBS.has(verb)) return deny('can only get, create, update, patch, or delete a CSINode')
  if (subresource) return deny('cannot authorize CSINode subresources')
  if (verb !== 'create' && name !== nodeName) return deny(CSI_NODE_NAME_MESSAGE)
  return ALLOWED
}

const OWN_OBJECT_VERBS = new Set(['get', 'create', 'update', 'patch', 'delete'])
const isRead = (verb: string): boolean => verb === 'get' || verb === 'list' || verb === 'watch'
const isChange = (verb: string): boolean => verb === 'update' || verb === 'patch'

function authorizeOwnNode({ nodeName, attributes }: NodeRequest): Decision {
  const { verb, subresource, name } = attributes
  if (subresource === 'status') return isChange(verb) ? ALLOWED : DENIED
  if (subresource) return DENIED
  if (verb === 'create' || isChange(verb)) return ALLOWED
  if (!isRead(verb)) return DENIED
  if (name === nodeName) return ALLOWED
  return deny(
    name
      ? `node '${nodeName}' cannot read '${name}', only its own Node object`
      : `node '${nodeName}' cannot read all nodes, only its own Node object`,
  )
}

function authorizePod(request: NodeRequest): Decision {
  const { verb, subresource, name, fieldSelector = [] } = request.attributes
  if (subresource === 'status') return isChange(verb) ? ALLOWED : DENIED
  if (subresource === 'eviction') return verb === 'create' ? ALLOWED : DENIED
  if (subresource) return DENIED
  if (verb === 'create' || verb === 'delete') return ALLOWED
  if (verb === 'get') return authorizeGet(request, 'pods')
  if (!isRead(verb)) return DENIED
  if (requiredFieldValue(fieldSelector, 'spec.nodeName') === request.nodeName) return ALLOWED
  if (name) return authorizeRelated(request, 'pods')
  return deny('can only list/watch pods with spec.nodeName field selector')
}
