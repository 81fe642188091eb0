// The objects that each node may read: its pods, the objects that they name, the volumes of their claims, the secrets of these
// volumes, and its attachments. follow-objects.ts updates the graph, and node-authorizer.ts queries it.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { type ObjectReference, type ReferencedResource, referencesOfPod, secretsOfVolume } from './object-references.ts'

export type GraphResource = ReferencedResource | 'pods' | 'persistentvolumes' | 'volumeattachments'

export interface NodeGraph {
  /** A pod's key is `NAMESPACE/NAME`. */
  setPod(key: string, pod: Readonly<Pod> | undefined): void
  setVolume(name: string, volume: Readonly<PersistentVolume> | undefined): void
  setAttachment(name: string, attachment: Readonly<VolumeAttachment> | undefined): void
  /** Returns whether the node may read the object. */
  isRelated(nodeName: string, object: { resource: GraphResource; namespace: string; name: string }): boolean
}

/** A node can create pods with this annotation, so these pods must not give the node access to other objects. */
export const MIRROR_POD_ANNOTATION = 'kubernetes.io/config.mirror'

interface PodEdges {
  readonly nodeName: string
  readonly references: readonly string[]
}

/** The parts of the claim's reference, which take half the memory of the text: every volume has such an object. */
interface VolumeEdges {
  readonly claimNamespace: string
  readonly claimName: string
  readonly secrets: readonly string[]
}

const NO_SECRETS: readonly string[] = []

export function createNodeGraph(): NodeGraph {
  const pods = new Map<string, PodEdges>()
  /** For each object that pods name: the number of these pods by node. */
  const nodesByReference = new Map<string, Map<string, number>>()
  const volumes = new Map<string, VolumeEdges>()
  /** The claims of the volumes that name a secret, by secret and volume. */
  const claimsBySecret = new Map<string, Map<string, string>>()
  const nodeByAttachment = new Map<string, string>()

  function addPod(key: string, pod: Readonly<Pod>, nodeName: string): void {
    const isMirrorPod = pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined
    const references = isMirrorPod ? [] : [...new Set(referencesOfPod(pod).map(keyOfReference))]
    pods.set(key, { nodeName, references })
    for (const reference of references) {
      const nodes = nodesByReference.get(reference) ?? new Map<string, number>()
      nodes.set(nodeName, (nodes.get(nodeName) ?? 0) + 1)
      nodesByReference.set(reference, nodes)
    }
  }

  function removePod(key: string): void {
    const edges = pods.get(key)
    if (!edges) return
    pods.delete(key)
    for (const reference of edges.references) {
      const nodes = nodesByReference.get(reference)!
      const count = nodes.get(edges.nodeName)! - 1
      if (count > 0) nodes.set(edges.nodeName, count)
      else nodes.delete(edges.nodeName)
      if (nodes.size === 0) nodesByReference.delete(reference)
    }
  }

  function removeVolume(name: string): void {
    const edges = volumes.get(name)
    if (!edges) return
    volumes.delete(name)
    for (const secret of edges.secrets) {
      const claims = claimsBySecret.get(secret)!
      claims.delete(name)
      if (claims.size === 0) claimsBySecret.delete(secret)
    }
  }

  const isNamedByPod = (nodeName: string, reference: string) => nodesByReference.get(reference)?.has(nodeName) === true

  return {
    setPod(key, pod) {
      removePod(key)
      if (pod?.spec?.nodeName) addPod(key, pod, pod.spec.nodeName)
    },
    setVolume(name, volume) {
      removeVolume(name)
      const { namespace, name: claimName } = volume?.spec?.claimRef ?? {}
      if (!volume || !claimName) return
      const references = secretsOfVolume(volume)
      const secrets = references.length === 0 ? NO_SECRETS : [...new Set(references.map(keyOfReference))]
      const edges = { claimNamespace: namespace ?? '', claimName, secrets }
      volumes.set(name, edges)
      for (const secret of secrets) {
        const claims = claimsBySecret.get(secret) ?? new Map<string, string>()
        claimsBySecret.set(secret, claims.set(name, claimReferenceOf(edges)))
      }
    },
    setAttachment(name, attachment) {
      if (attachment) nodeByAttachment.set(name, attachment.spec.nodeName)
      else nodeByAttachment.delete(name)
    },
    isRelated(nodeName, { resource, namespace, name }) {
      if (resource === 'pods') return pods.get(`${namespace}/${name}`)?.nodeName === nodeName
      if (resource === 'volumeattachments') return nodeByAttachment.get(name) === nodeName
      if (resource === 'persistentvolumes') {
        const edges = volumes.get(name)
        return edges !== undefined && isNamedByPod(nodeName, claimReferenceOf(edges))
      }
      const reference = keyOfReference({ resource, namespace, name })
      if (isNamedByPod(nodeName, reference)) return true
      if (resource !== 'secrets') return false
      return [...(claimsBySecret.get(reference)?.values() ?? [])].some((claim) => isNamedByPod(nodeName, claim))
    },
  }
}

const claimReferenceOf = ({ claimNamespace, claimName }: VolumeEdges): string =>
  keyOfReference({ resource: 'persistentvolumeclaims', namespace: claimNamespace, name: claimName })

const keyOfReference = ({ resource, namespace, name }: ObjectReference): string => `${resource}/${namespace}/${name}`
