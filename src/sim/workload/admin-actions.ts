// Actions on classes, nodes, namespaces and feature gates, on config maps, which quotas count, and on capacity objects that no
// driver has reported. Restores deleted objects at the end of a plan.
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import { ATTRIBUTES_CLASSES, CLASSES, NAMESPACES, TOPOLOGY_KEY } from '../plan/catalog.ts'
import type { KindName, Manifest, UserAction } from '../plan/plan.ts'
import { type Draft, someNamespace } from './draft.ts'
import { ZONE } from './pod-actions.ts'

const MINUTE_MS = 60_000
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'

const classManifest = (name: string): Manifest => ({ metadata: { name }, ...CLASSES[name] })
const attributesClassManifest = (name: string): Manifest => ({ metadata: { name }, ...ATTRIBUTES_CLASSES[name] })

/** Deletes an object and in most cases recreates it later. */
function deleteAndRecreate({ rng, addLater }: Draft, kind: KindName, object: Manifest): UserAction {
  const { name } = object.metadata as { readonly name: string }
  if (rng.chance(0.8)) addLater(rng.between(10, 420) * 1_000, { do: 'create', kind, object })
  return { do: 'delete', kind, ref: { name } }
}

export function changeClass(draft: Draft): UserAction {
  const { rng } = draft
  const name = rng.pick(Object.keys(CLASSES))
  const object = classManifest(name)
  switch (rng.below(6)) {
    case 0:
    case 1:
      return deleteAndRecreate(draft, 'storage class', object)
    case 2:
      return { do: 'create', kind: 'storage class', object }
    case 3: {
      const patch = { allowVolumeExpansion: rng.chance(0.5) }
      if (CLASSES[name]!.allowVolumeExpansion)
        draft.addLater(rng.between(1, 8) * MINUTE_MS, {
          do: 'edit',
          kind: 'storage class',
          ref: { name },
          patch: { allowVolumeExpansion: true },
          purpose: 'expansion',
        })
      return { do: 'edit', kind: 'storage class', ref: { name }, patch, purpose: 'expansion' }
    }
    default: {
      const patch = { metadata: { annotations: { [DEFAULT_CLASS]: rng.chance(0.7) ? 'true' : 'false' } } }
      return { do: 'edit', kind: 'storage class', ref: { name }, patch, purpose: 'default' }
    }
  }
}

export function changeAttributesClass(draft: Draft): UserAction {
  const { rng } = draft
  const object = attributesClassManifest(rng.pick(Object.keys(ATTRIBUTES_CLASSES)))
  if (rng.chance(0.5)) return deleteAndRecreate(draft, 'attributes class', object)
  return { do: 'create', kind: 'attributes class', object: rng.chance(0.5) ? attributesClassManifest('late') : object }
}

const editNode = (name: string, purpose: string, patch: Manifest): UserAction => ({
  do: 'edit',
  kind: 'node',
  ref: { name },
  patch,
  purpose,
})

export function changeNode(draft: Draft): UserAction {
  const { rng, nodes } = draft
  const name = rng.pick(nodes)
  const uncordon = editNode(name, 'uncordon', { spec: { unschedulable: false } })
  switch (rng.below(6)) {
    case 0:
    case 1:
    case 2:
      if (rng.chance(0.9)) draft.addLater(rng.between(20, 600) * 1_000, uncordon)
      return editNode(name, 'cordon', { spec: { unschedulable: true } })
    case 3:
      return uncordon
    default:
      return editNode(name, 'label', { metadata: { labels: { [ZONE]: rng.pick(['a', 'b', null]) } } })
  }
}

export function changeConfigMap(draft: Draft): UserAction {
  const { rng } = draft
  const ref = { namespace: someNamespace(rng), name: `m${rng.below(5)}` }
  const data = { value: String(rng.below(1_000)) }
  switch (rng.below(4)) {
    case 0:
      return { do: 'delete', kind: 'config map', ref }
    case 1:
      return { do: 'edit', kind: 'config map', ref, patch: { data }, purpose: 'data' }
    default:
      return { do: 'create', kind: 'config map', object: { metadata: { ...ref }, data } }
  }
}

/** The name prefix of capacity objects that users create. */
export const MANUAL_CAPACITY = 'manual-'

/** Creates a capacity object as a user, with figures that no driver reported, and deletes it later. */
export function createManualCapacity(draft: Draft): UserAction {
  const { rng, nodes } = draft
  const ref = { namespace: someNamespace(rng), name: `${MANUAL_CAPACITY}${rng.below(2)}` }
  draft.addLater(rng.between(30, 120) * 1_000, { do: 'delete', kind: 'capacity', ref })
  return {
    do: 'create',
    kind: 'capacity',
    object: {
      metadata: { ...ref },
      storageClassName: 'local-wait',
      nodeTopology: rng.chance(0.2) ? {} : { matchLabels: { [TOPOLOGY_KEY]: rng.pick(nodes) } },
      capacity: rng.pick(['0', '1Ei', '-5Gi', '3Gi']),
    },
  }
}

/** Deletes and recreates a namespace. Most plans do not contain this action, because it affects everything else. */
export function deleteNamespace(draft: Draft): UserAction {
  const { rng, claims, pods, quotas } = draft
  const name = NAMESPACES[1]
  for (const objects of [claims, pods, quotas])
    for (const key of objects.keys()) if (key.startsWith(`${name}/`)) objects.delete(key)
  // The deletion ends when the namespace is empty: recreating it may take several attempts.
  const object = { metadata: { name } }
  for (const afterMinutes of [1, 3, 6, 9])
    draft.addLater(afterMinutes * MINUTE_MS, { do: 'create', kind: 'namespace', object })
  return {
    do: 'delete',
    kind: 'namespace',
    ref: { name },
    ...(rng.chance(0.3) ? { propagation: 'Foreground' } : {}),
  }
}

/** Turns a feature gate off and later on again. Very few plans contain this action, because it affects everything else. */
export function setGate(draft: Draft): UserAction {
  const { rng } = draft
  const gate = rng.pick(FEATURE_GATES)
  draft.addLater(rng.between(2, 12) * MINUTE_MS, { do: 'set gate', gate, isOn: true })
  return { do: 'set gate', gate, isOn: false }
}

/** Restores classes, namespaces and schedulable nodes at the end of a plan. */
export const restoreObjects = ({ nodes }: Draft): UserAction[] => [
  ...nodes.map((name) => editNode(name, 'uncordon', { spec: { unschedulable: false } })),
  ...Object.keys(CLASSES).map(
    (name): UserAction => ({ do: 'create', kind: 'storage class', object: classManifest(name) }),
  ),
  ...Object.keys(ATTRIBUTES_CLASSES).map(
    (name): UserAction => ({ do: 'create', kind: 'attributes class', object: attributesClassManifest(name) }),
  ),
  ...NAMESPACES.map((name): UserAction => ({ do: 'create', kind: 'namespace', object: { metadata: { name } } })),
]
