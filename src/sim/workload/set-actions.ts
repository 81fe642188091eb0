// Actions of users on stateful sets: create, scale, change and break their template, change the retention of claims, and delete
// sets and single pods.
import type { Ref, UserAction } from '../plan/plan.ts'
import { type Draft, someNamespace } from './draft.ts'
import type { Rng } from './rng.ts'

const SET_NAME_COUNT = 2
const REPLICAS_MAX = 4

const someSet = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: `set${rng.below(SET_NAME_COUNT)}` })

const someRetention = (rng: Rng) => ({
  whenScaled: rng.pick(['Retain', 'Delete']),
  whenDeleted: rng.pick(['Retain', 'Delete']),
})

export function createSet({ rng }: Draft): UserAction {
  const ref = someSet(rng)
  const labels = { app: ref.name }
  const claim = {
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: rng.pick(['net-now', 'net-wait', 'local-wait']),
      resources: { requests: { storage: '1Gi' } },
    },
  }
  const container = { name: 'main', image: 'v0', volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  const spec = {
    replicas: rng.between(1, REPLICAS_MAX),
    selector: { matchLabels: labels },
    podManagementPolicy: rng.chance(0.7) ? 'OrderedReady' : 'Parallel',
    updateStrategy: rng.chance(0.8)
      ? {
          type: 'RollingUpdate',
          rollingUpdate: { partition: rng.chance(0.3) ? 1 : 0, maxUnavailable: rng.between(1, 2) },
        }
      : { type: 'OnDelete' },
    persistentVolumeClaimRetentionPolicy: someRetention(rng),
    ...(rng.chance(0.3) ? { minReadySeconds: rng.between(1, 20) } : {}),
    template: {
      metadata: { labels },
      spec: { containers: [container], terminationGracePeriodSeconds: rng.pick([0, 1, 5]) },
    },
    volumeClaimTemplates: [claim],
  }
  return { do: 'create', kind: 'stateful set', object: { metadata: { ...ref }, spec } }
}

const editSet = (ref: Ref, patch: object, purpose: string): UserAction => ({
  do: 'edit',
  kind: 'stateful set',
  ref,
  patch: { ...patch },
  purpose,
})

export const scaleSet = ({ rng }: Draft): UserAction =>
  editSet(someSet(rng), { spec: { replicas: rng.between(0, REPLICAS_MAX) } }, 'scale')

const templatePatch = (image: string, nodeSelector: object) => ({
  spec: { template: { spec: { containers: [{ name: 'main', image }], nodeSelector } } },
})
const NOWHERE = 'sim.example/nowhere'

export const changeTemplate = ({ rng }: Draft): UserAction =>
  editSet(someSet(rng), templatePatch(`v${rng.below(3)}`, { [NOWHERE]: null }), 'template')

/** Rolls out a template whose pods fit no node, and reverts it later. Users then delete most pods, as OrderedReady requires. */
export function breakTemplate(draft: Draft): UserAction {
  const { rng } = draft
  const ref = someSet(rng)
  const revertMs = rng.between(20, 90) * 1_000
  draft.addLater(revertMs, editSet(ref, templatePatch('v0', { [NOWHERE]: null }), 'template'))
  for (let ordinal = 0; ordinal < REPLICAS_MAX; ordinal++) {
    const pod = { ...ref, name: `${ref.name}-${ordinal}` }
    if (rng.chance(0.7)) draft.addLater(revertMs + 10_000, { do: 'delete', kind: 'pod', ref: pod })
  }
  return editSet(ref, templatePatch('broken', { [NOWHERE]: 'true' }), 'break template')
}

export const changeRetention = ({ rng }: Draft): UserAction =>
  editSet(someSet(rng), { spec: { persistentVolumeClaimRetentionPolicy: someRetention(rng) } }, 'retention')

export function deletePodOfSet({ rng }: Draft): UserAction {
  const { namespace, name } = someSet(rng)
  const ref = { namespace, name: `${name}-${rng.below(REPLICAS_MAX)}` }
  return { do: 'delete', kind: 'pod', ref, ...(rng.chance(0.3) ? { graceSeconds: 0 } : {}) }
}

export function deleteSet({ rng }: Draft): UserAction {
  const options = rng.pickWeighted<object>([
    [4, {}],
    [2, { propagation: 'Orphan' }],
    [2, { propagation: 'Foreground' }],
  ])
  return { do: 'delete', kind: 'stateful set', ref: someSet(rng), ...options }
}
