// Actions of users on pods: create pods with up to three claims and some ephemeral volumes, on any node or a given one, with
// or without a priority, label them, and delete them with or without a grace period.

import { PRIORITY_CLASSES } from '../plan/catalog.ts'
import type { Manifest, UserAction } from '../plan/plan.ts'
import { generateClaimSpec } from './claim-actions.ts'
import { type Draft, isBlockName, keyOf, pickName, pickObject, someClaimName, somePod } from './draft.ts'

/** A label that administrators set on nodes and remove. */
export const ZONE = 'sim.example/zone'

export function createPod(draft: Draft): UserAction {
  const { rng, pods } = draft
  const ref = pickName(rng, pods, () => somePod(rng))
  if (!pods.has(keyOf(ref))) pods.set(keyOf(ref), ref)
  const volumes = [...generateClaimVolumes(draft, ref.namespace ?? ''), ...generateEphemeralVolumes(draft)]
  const isDevice = (name: string) => isBlockName(name)
  const container = {
    name: 'main',
    image: 'scratch',
    volumeMounts: volumes.filter(({ name }) => !isDevice(name)).map(({ name }) => ({ name, mountPath: `/${name}` })),
    volumeDevices: volumes
      .filter(({ name }) => isDevice(name))
      .map(({ name }) => ({ name, devicePath: `/dev/${name}` })),
    ...generateContainerResources(draft),
  }
  const spec = {
    containers: [container],
    ...(volumes.length > 0 ? { volumes } : {}),
    ...generatePlacement(draft),
    ...(rng.chance(0.5) ? { terminationGracePeriodSeconds: rng.pick([0, 1, 5, 30]) } : {}),
  }
  return { do: 'create', kind: 'pod', object: { metadata: { ...ref }, spec } }
}

/** Creates a pod with spec.nodeName, which bypasses the scheduler. Its node may not be registered yet. */
export function createPlacedPod(draft: Draft): UserAction {
  const action = createPod(draft)
  if (action.do !== 'create') return action
  const { nodeSelector: _, schedulerName: __, ...spec } = action.object.spec as Manifest
  return { ...action, object: { ...action.object, spec: { ...spec, nodeName: draft.rng.pick(draft.nodes) } } }
}

/** Creates a pod of some priority that requests a large part of a node, so that nodes are often full. */
export function createPriorityPod(draft: Draft): UserAction {
  const action = createPod(draft)
  if (action.do !== 'create') return action
  const { rng } = draft
  const { containers, ...spec } = action.object.spec as Manifest & { containers: readonly Manifest[] }
  const resources = { requests: { cpu: rng.pick(['2', '3', '5', '8']) } }
  const priorityClassName = rng.pick([undefined, ...Object.keys(PRIORITY_CLASSES)])
  const newSpec = {
    ...spec,
    containers: containers.map((container) => ({ ...container, resources })),
    ...(priorityClassName ? { priorityClassName } : {}),
  }
  return { ...action, object: { ...action.object, spec: newSpec } }
}

function generateClaimVolumes({ rng, claims }: Draft, namespace: string) {
  const claimsInNamespace = [...claims.values()].filter(({ ref }) => ref.namespace === namespace)
  const count = rng.pickWeighted([
    [2, 0],
    [8, 1],
    [3, 2],
    [1, 3],
  ])
  const names = new Set(
    Array.from({ length: count }, () =>
      claimsInNamespace.length > 0 && rng.chance(0.9) ? rng.pick(claimsInNamespace).ref.name : someClaimName(rng),
    ),
  )
  return [...names].map((claimName) => ({
    name: claimName,
    persistentVolumeClaim: { claimName, ...(rng.chance(0.05) ? { readOnly: true } : {}) },
  }))
}

function generateEphemeralVolumes(draft: Draft) {
  const { rng } = draft
  const count = rng.pickWeighted([
    [8, 0],
    [3, 1],
    [1, 2],
  ])
  return Array.from({ length: count }, (_, nth) => ({
    name: `own-${nth}`,
    ephemeral: { volumeClaimTemplate: { spec: generateClaimSpec(draft).spec } },
  }))
}

function generateContainerResources({ rng }: Draft) {
  const choice = rng.below(20)
  if (choice < 10) return {}
  if (choice === 19) return { resources: { requests: { cpu: '1000' } } } // more than any node has
  const requests = { cpu: '100m', memory: '64Mi' }
  return { resources: { requests, ...(choice < 14 ? { limits: { cpu: '200m', memory: '128Mi' } } : {}) } }
}

function generatePlacement({ rng, nodes }: Draft) {
  const choice = rng.below(40)
  if (choice < 2) return { nodeName: rng.pick(nodes) }
  if (choice < 4) return { nodeSelector: { [ZONE]: rng.pick(['a', 'b']) } }
  if (choice === 4) return { nodeSelector: { 'sim.example/nowhere': 'true' } }
  if (choice === 5) return { schedulerName: 'nobody' }
  return {}
}

export function deletePod(draft: Draft): UserAction {
  const { rng, pods } = draft
  const ref = pickObject(rng, pods, () => somePod(rng))
  pods.delete(keyOf(ref))
  const options = rng.pickWeighted<object>([
    [6, {}],
    [3, { graceSeconds: 0 }],
    [2, { graceSeconds: rng.between(1, 20) }],
    [1, { propagation: 'Foreground' }],
    [0.5, { propagation: 'Orphan' }],
  ])
  return { do: 'delete', kind: 'pod', ref, ...options }
}

export function touchPod(draft: Draft): UserAction {
  const ref = pickObject(draft.rng, draft.pods, () => somePod(draft.rng))
  const patch = { metadata: { labels: { touched: String(draft.rng.below(100)) } } }
  return { do: 'edit', kind: 'pod', ref, patch, purpose: 'label' }
}
