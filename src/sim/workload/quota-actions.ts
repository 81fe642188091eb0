// Actions of administrators on quotas and limit ranges: generous limits, and some below the current usage.

import { ATTRIBUTES_CLASSES, CLASSES } from '../plan/catalog.ts'
import type { UserAction } from '../plan/plan.ts'
import { type Draft, keyOf, pickName, pickObject, someNamespace, someQuota } from './draft.ts'
import type { Rng } from './rng.ts'

type Bound = readonly [key: string, generate: (rng: Rng) => string]

const countBetween =
  (min: number, max: number) =>
  (rng: Rng): string =>
    String(rng.between(min, max))
const giBetween =
  (min: number, max: number) =>
  (rng: Rng): string =>
    `${rng.between(min, max)}Gi`

/** Resources that a quota scoped by attributes class can count. */
const CLAIM_BOUNDS: readonly Bound[] = [
  ['requests.storage', giBetween(10, 80)],
  ['persistentvolumeclaims', countBetween(3, 14)],
]
const AMOUNT_BOUNDS: readonly Bound[] = [
  ['limits.iops', countBetween(1_000, 6_000)],
  ['requests.iops', countBetween(400, 1_200)],
  ['limits.throughput', (rng) => `${rng.between(20, 200)}Mi`],
  ['requests.throughput', (rng) => `${rng.between(10, 60)}Mi`],
]
const OBJECT_BOUNDS: readonly Bound[] = [
  ['count/persistentvolumeclaims', countBetween(4, 14)],
  ['count/pods', countBetween(4, 12)],
  ['count/configmaps', countBetween(2, 8)],
  ['count/leases.coordination.k8s.io', countBetween(0, 3)],
  ['configmaps', countBetween(2, 8)],
  ['secrets', countBetween(0, 4)],
  ['resourcequotas', countBetween(2, 5)],
  ['pods', countBetween(4, 12)],
]
const CLASS_BOUNDS: readonly Bound[] = Object.keys(CLASSES).flatMap((name): Bound[] => [
  [`${name}.storageclass.storage.k8s.io/requests.storage`, giBetween(5, 40)],
  [`${name}.storageclass.storage.k8s.io/persistentvolumeclaims`, countBetween(1, 6)],
])
const POD_BOUNDS: readonly Bound[] = [
  ['pods', countBetween(3, 10)],
  ['requests.cpu', countBetween(1, 4)],
  ['limits.memory', giBetween(1, 4)],
]
/** With some of these, every container must state its resources. */
const RESOURCE_BOUNDS: readonly Bound[] = [
  ['cpu', countBetween(1, 4)],
  ['memory', giBetween(1, 4)],
  ['requests.cpu', countBetween(1, 4)],
  ['requests.memory', giBetween(1, 4)],
  ['limits.cpu', countBetween(2, 8)],
  ['limits.memory', giBetween(1, 8)],
  ['requests.ephemeral-storage', giBetween(1, 4)],
  ['limits.ephemeral-storage', giBetween(1, 4)],
  ['requests.hugepages-2Mi', giBetween(1, 2)],
  ['requests.example.com/gpu', countBetween(0, 2)],
]

const POD_SCOPES = ['Terminating', 'NotTerminating', 'NotBestEffort', 'CrossNamespacePodAffinity'] as const

export function createQuota(draft: Draft): UserAction {
  const { rng, quotas } = draft
  const ref = pickName(rng, quotas, () => someQuota(rng))
  if (!quotas.has(keyOf(ref))) quotas.set(keyOf(ref), ref)
  return { do: 'create', kind: 'quota', object: { metadata: { ...ref }, spec: generateQuotaSpec(draft) } }
}

function generateQuotaSpec(draft: Draft) {
  const { rng, hasAmounts } = draft
  const claimBounds = hasAmounts ? [...CLAIM_BOUNDS, ...AMOUNT_BOUNDS] : CLAIM_BOUNDS
  switch (rng.below(10)) {
    case 0:
    case 1:
      return { hard: someBounds(rng, claimBounds), scopeSelector: generateAttributesSelector(rng) }
    case 2:
      return { hard: someBounds(rng, CLAIM_BOUNDS), scopes: ['VolumeAttributesClass'] }
    case 3:
      return generatePodQuota(rng)
    case 4:
      return { hard: someBounds(rng, RESOURCE_BOUNDS) }
    default:
      return { hard: someBounds(rng, [...claimBounds, ...claimBounds, ...OBJECT_BOUNDS, ...CLASS_BOUNDS]) }
  }
}

function generatePodQuota(rng: Rng) {
  if (rng.chance(0.3)) return { hard: { pods: String(rng.between(2, 6)) }, scopes: ['BestEffort'] }
  const hard = someBounds(rng, POD_BOUNDS)
  if (rng.chance(0.7)) return { hard, scopes: [rng.pick(POD_SCOPES)] }
  return { hard, scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'DoesNotExist' }] } }
}

function generateAttributesSelector(rng: Rng) {
  const operator = rng.pick(['In', 'NotIn', 'Exists', 'DoesNotExist'])
  const hasValues = operator === 'In' || operator === 'NotIn'
  const values = hasValues ? { values: [rng.pick(Object.keys(ATTRIBUTES_CLASSES))] } : {}
  return { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator, ...values }] }
}

const someBounds = (rng: Rng, bounds: readonly Bound[]): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: rng.between(1, 3) }, () => rng.pick(bounds)).map(([key, generate]) => [key, generate(rng)]),
  )

/** Edits a quota. Some limits are lowered and raised again later. */
export function editQuota(draft: Draft): UserAction {
  const { rng } = draft
  const ref = pickObject(rng, draft.quotas, () => someQuota(rng))
  const edit = (purpose: string, hard: object): UserAction => ({
    do: 'edit',
    kind: 'quota',
    ref,
    patch: { spec: { hard } },
    purpose,
  })
  if (rng.chance(0.4)) {
    const key = rng.pick(['persistentvolumeclaims', 'requests.storage', 'pods'])
    draft.addLater(rng.between(30, 400) * 1_000, edit('raise', { [key]: key === 'requests.storage' ? '200Gi' : '40' }))
    return edit('lower', { [key]: key === 'requests.storage' ? '2Gi' : '1' })
  }
  if (rng.chance(0.2)) {
    const patch = { spec: { scopeSelector: rng.chance(0.5) ? generateAttributesSelector(rng) : null } }
    return { do: 'edit', kind: 'quota', ref, patch, purpose: 'selector' }
  }
  return edit('bounds', someBounds(rng, [...CLAIM_BOUNDS, ...OBJECT_BOUNDS, ...CLASS_BOUNDS]))
}

export function deleteQuota(draft: Draft): UserAction {
  const { rng, quotas } = draft
  const ref = pickObject(rng, quotas, () => someQuota(rng))
  quotas.delete(keyOf(ref))
  return { do: 'delete', kind: 'quota', ref }
}

export function changeLimitRange(draft: Draft): UserAction {
  const { rng } = draft
  const ref = { namespace: someNamespace(rng), name: `l${rng.below(2)}` }
  const choice = rng.below(6)
  if (choice < 2) return { do: 'delete', kind: 'limit range', ref }
  const spec = { limits: [generateLimitItem(draft)] }
  if (choice === 2) return { do: 'edit', kind: 'limit range', ref, patch: { spec }, purpose: 'bounds' }
  return { do: 'create', kind: 'limit range', object: { metadata: { ...ref }, spec } }
}

function generateLimitItem({ rng, hasAmounts }: Draft) {
  if (rng.chance(0.2)) return { type: 'Container', default: { cpu: '200m' }, defaultRequest: { cpu: '100m' } }
  const storage = { max: { storage: `${rng.between(8, 30)}Gi` }, min: { storage: '1Gi' } }
  if (!hasAmounts || rng.chance(0.6)) return { type: 'PersistentVolumeClaim', ...storage }
  return {
    type: rng.pick(['PersistentVolumeClaim', 'Container']),
    max: { iops: '3000' },
    ...(rng.chance(0.5) ? { defaultRequest: { iops: '400' }, default: { iops: '2000' } } : {}),
  }
}
