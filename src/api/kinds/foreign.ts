// Kinds that are not ours but that a stock kube-scheduler or kube-controller-manager watches and waits for. There are
// never any objects of them here: lists are empty, watches stay quiet, writes are refused.
import { defineForeignKind } from '../foreign-kind.ts'
import type { Kind } from '../kind.ts'

const FOREIGN: readonly [group: string, version: string, kind: string, plural: string, namespaced: boolean][] = [
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

export const FOREIGN_KINDS: readonly Kind[] = FOREIGN.map(([group, version, kind, plural, namespaced]) =>
  defineForeignKind({
    group,
    version,
    kind,
    plural,
    namespaced,
    doc: 'A kind of another system; there are none here.',
  }),
)
