// Declares the kinds that are not implemented, but that kube-scheduler and kube-controller-manager wait for at startup.
// Lists are empty, watches are idle, and writes are rejected.
import { defineForeignKind } from '../foreign-kind.ts'
import type { Kind } from '../kind.ts'

const DECLARATIONS: readonly [group: string, version: string, kind: string, plural: string, namespaced: boolean][] = [
  ['', 'v1', 'Service', 'services', true],
  ['', 'v1', 'ReplicationController', 'replicationcontrollers', true],
  ['apps', 'v1', 'ReplicaSet', 'replicasets', true],
  ['apps', 'v1', 'StatefulSet', 'statefulsets', true],
  ['policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets', true],
  ['resource.k8s.io', 'v1', 'ResourceClaim', 'resourceclaims', true],
  ['resource.k8s.io', 'v1', 'ResourceClaimTemplate', 'resourceclaimtemplates', true],
  ['resource.k8s.io', 'v1', 'ResourceSlice', 'resourceslices', false],
  ['resource.k8s.io', 'v1', 'DeviceClass', 'deviceclasses', false],
]

export const FOREIGN_KINDS: readonly Kind[] = DECLARATIONS.map(([group, version, kind, plural, namespaced]) =>
  defineForeignKind({
    group,
    version,
    kind,
    plural,
    namespaced,
    doc: 'A kind that this server does not implement; there are no objects of it.',
  }),
)
