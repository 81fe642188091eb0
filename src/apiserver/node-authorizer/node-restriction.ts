// Limits the writes of nodes as the Kubernetes admission plugin NodeRestriction does: a node writes only its own Node,
// CSINode and Lease, creates only mirror pods, changes the status of its pods, deletes and evicts them, and changes only the
// sizes and conditions in the status of claims. A fenced node (api/kinds/node/fencing.ts) writes only the objects that its return
// requires. The check reads the Node in the transaction of the write, so a fence applies to the next write on every server.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { isFenced } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { forbidden, notFound } from '../../api/status-error.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission/index.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import {
  CSI_NODE_NAME_MESSAGE,
  LEASE_NAME_MESSAGE,
  LEASE_NAMESPACE_MESSAGE,
  NODE_LEASE_NAMESPACE,
} from './node-authorizer.ts'
import { MIRROR_POD_ANNOTATION } from './node-graph.ts'
import { nodeNameOf } from './node-identity.ts'
import { forbiddenLabelChanges } from './node-labels.ts'
import { referencesOfPod } from './object-references.ts'

export const nodeRestriction: AdmissionPlugin = {
  name: 'NodeRestriction',
  // Before validation, so that validation errors do not reveal other objects to a node.
  mutate: restrict,
  validate(request) {
    if (request.operation === 'DELETE') restrict(request) // `mutate` is not called
    return undefined
  },
}

function restrict(request: AdmissionRequest): void {
  const nodeName = nodeNameOf(request.user)
  if (nodeName === undefined) return
  const { resource } = request
  const message =
    nodeName === ''
      ? `could not determine node from user ${JSON.stringify(request.user.name)}`
      : (RESTRICTIONS[`${resource.group}/${resource.plural}`]?.(JSON.stringify(nodeName), nodeName, request) ??
        fenceProblem(nodeName, request))
  if (message) throw forbidden(resource, request.name, message)
}

/**
 * Returns why a fenced node must not make this write, or undefined if the node may make it. A fenced node may create and update
 * its own Node, CSINode and Lease to report its return, and update or remove its pods that are being deleted. It cannot delete
 * its Node, which has the fence.
 */
function fenceProblem(
  nodeName: string,
  { resource, operation, oldObject, find }: AdmissionRequest,
): string | undefined {
  const resourceName = `${resource.group}/${resource.plural}`
  if (RETURN_RESOURCES.has(resourceName) && operation !== 'DELETE') return undefined
  if (resourceName === '/pods' && oldObject?.metadata.deletionTimestamp !== undefined) return undefined
  return isFenced(find(nodeKind, '', nodeName)) ? fencedMessage(nodeName) : undefined
}

const RETURN_RESOURCES: ReadonlySet<string> = new Set([
  '/nodes',
  'storage.k8s.io/csinodes',
  'coordination.k8s.io/leases',
])

export const fencedMessage = (nodeName: string): string =>
  `node ${JSON.stringify(nodeName)} is fenced: until it has returned and unmounted the volumes of removed pods, it may write only its Node, CSINode, Lease and pods that are being deleted`

/** Returns why the node must not make this write, or undefined if it may. `quotedName` is the node name for messages. */
type Restriction = (quotedName: string, nodeName: string, request: AdmissionRequest) => string | undefined

const RESTRICTIONS: Readonly<Record<string, Restriction>> = {
  '/pods': restrictPod,
  '/nodes': restrictNode,
  '/persistentvolumeclaims': restrictClaim,
  'coordination.k8s.io/leases': (_quotedName, nodeName, { namespace, name }) => {
    if (namespace !== NODE_LEASE_NAMESPACE) return LEASE_NAMESPACE_MESSAGE
    return name === nodeName ? undefined : LEASE_NAME_MESSAGE
  },
  'storage.k8s.io/csinodes': (_quotedName, nodeName, { name }) =>
    name === nodeName ? undefined : CSI_NODE_NAME_MESSAGE,
}

function restrictPod(quotedName: string, nodeName: string, request: AdmissionRequest): string | undefined {
  const { operation, subresource, object, oldObject } = request
  const isOwn = (oldObject as Pod | undefined)?.spec?.nodeName === nodeName
  if (subresource === 'status') {
    if (!isOwn) return `node ${quotedName} can only update pod status for pods with spec.nodeName set to itself`
    return restrictPodStatus(quotedName, object, oldObject)
  }
  if (subresource === 'eviction') {
    return isOwn ? undefined : `node ${nodeName} can only evict pods with spec.nodeName set to itself`
  }
  if (subresource !== '') {
    return `unexpected pod subresource ${JSON.stringify(subresource)}, only 'status' and 'eviction' are allowed`
  }
  if (operation === 'CREATE') return restrictMirrorPod(quotedName, nodeName, request)
  if (operation === 'DELETE') {
    return isOwn ? undefined : `node ${quotedName} can only delete pods with spec.nodeName set to itself`
  }
  return `unexpected operation "${operation}", node ${quotedName} can only create and delete mirror pods`
}

function restrictPodStatus(quotedName: string, pod: Pod, old: AnyObject): string | undefined {
  if (!equals(pod.metadata.labels ?? {}, old.metadata.labels ?? {})) {
    return `node ${quotedName} cannot update labels through pod status`
  }
  if (!equals(pod.status?.resourceClaimStatuses ?? [], old.status?.resourceClaimStatuses ?? [])) {
    return `node ${quotedName} cannot update resource claim statues`
  }
  if (!equals(pod.status?.extendedResourceClaimStatus, old.status?.extendedResourceClaimStatus)) {
    return `node ${quotedName} cannot update extended resource claim status`
  }
  return undefined
}

/** A node may create only the mirror pods of its static pods, which must not name other objects. */
function restrictMirrorPod(
  quotedName: string,
  nodeName: string,
  { object, find }: AdmissionRequest,
): string | undefined {
  const { metadata, spec } = object as Pod
  if (metadata.annotations?.[MIRROR_POD_ANNOTATION] === undefined) {
    return `pod does not have "${MIRROR_POD_ANNOTATION}" annotation, node ${quotedName} can only create mirror pods`
  }
  if (spec?.nodeName !== nodeName) return `node ${quotedName} can only create pods with spec.nodeName set to itself`
  const [owner, ...otherOwners] = metadata.ownerReferences ?? []
  if (otherOwners.length > 0) {
    return `node ${quotedName} can only create pods with a single owner reference set to itself`
  }
  if (owner?.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== nodeName) {
    return `node ${quotedName} can only create pods with an owner reference set to itself`
  }
  if (!owner.controller)
    return `node ${quotedName} can only create pods with a controller owner reference set to itself`
  if (owner.blockOwnerDeletion) return `node ${quotedName} must not set blockOwnerDeletion on an owner reference`
  const node = find(nodeKind, '', nodeName)
  if (!node) throw notFound(nodeKind, nodeName)
  if (owner.uid !== node.metadata.uid) {
    return `node ${nodeName} UID mismatch: expected ${owner.uid} got ${node.metadata.uid}`
  }
  const resource = referencedResource(object)
  return resource && `node ${quotedName} can not create pods that reference ${resource}`
}

function referencedResource(pod: Pod): string | undefined {
  const [reference] = referencesOfPod(pod)
  if (reference) return reference.resource
  const { resourceClaims = [], volumes = [] } = pod.spec ?? {}
  if (resourceClaims.length > 0) return 'resourceclaims'
  for (const { csi, glusterfs, projected } of volumes) {
    if (csi) return 'csidrivers (via CSI volumes)'
    if (glusterfs) return 'endpoints (via glusterFS volumes)'
    for (const { serviceAccountToken, clusterTrustBundle } of projected?.sources ?? []) {
      if (serviceAccountToken) return 'serviceaccounts (via projected volumes)'
      if (clusterTrustBundle) return 'clustertrustbundles (via projected volumes)'
    }
  }
  return undefined
}

function restrictNode(quotedName: string, nodeName: string, request: AdmissionRequest): string | undefined {
  const { operation, name, object, oldObject } = request
  if (name !== nodeName) return `node ${quotedName} is not allowed to modify node ${JSON.stringify(name)}`
  const { metadata, spec } = (object ?? { metadata: {} }) as Node
  if (operation === 'CREATE') {
    if (spec?.configSource) return `node ${quotedName} is not allowed to create pods with a non-nil configSource`
    const labels = forbiddenLabelChanges(metadata.labels)
    if (labels.length > 0) return `node ${quotedName} is not allowed to set the following labels: ${labels.join(', ')}`
  }
  if (operation === 'UPDATE') {
    const oldNode = oldObject as Node
    if (spec?.configSource && !equals(spec.configSource, oldNode.spec?.configSource)) {
      return `node ${quotedName} is not allowed to update configSource to a new non-nil configSource`
    }
    if (!equals(spec?.taints ?? [], oldNode.spec?.taints ?? [])) {
      return `node ${quotedName} is not allowed to modify taints`
    }
    if (!equals(metadata.ownerReferences ?? [], oldNode.metadata.ownerReferences ?? [])) {
      return `node ${quotedName} is not allowed to modify ownerReferences`
    }
    const labels = forbiddenLabelChanges(metadata.labels, oldNode.metadata.labels)
    if (labels.length > 0) return `is not allowed to modify labels: ${labels.join(', ')}`
  }
  return undefined
}

function restrictClaim(quotedName: string, _nodeName: string, request: AdmissionRequest): string | undefined {
  const { subresource, operation, object, oldObject } = request
  if (subresource !== 'status') return 'may only update PVC status'
  if (operation !== 'UPDATE') return `unexpected operation "${operation}"`
  if (equals(withoutNodeFields(object), withoutNodeFields(oldObject))) return undefined
  return `node ${quotedName} is not allowed to update fields other than status.quantity and status.conditions`
}

/** Returns a claim without the fields that a node may change. */
function withoutNodeFields({ metadata, spec, status = {} }: AnyObject): JsonValue {
  const { resourceVersion: _, managedFields: __, ...meta } = metadata
  const { capacity: _1, conditions: _2, allocatedResources: _3, allocatedResourceStatuses: _4, ...otherStatus } = status
  return { metadata: meta, spec, status: otherStatus }
}

const equals = (a: unknown, b: unknown): boolean => jsonEquals(a as JsonValue, b as JsonValue)
