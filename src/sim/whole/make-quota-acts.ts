// What administrators do with quotas and limit ranges: bounds on everything that can be counted, generous ones and some
// that are below what is used already.

import type { Dice } from './dice.ts'
import { type Draft, freshName, keyOf, likely, someNamespace, someQuota } from './draft.ts'
import type { PeopleAct } from './plan.ts'
import { ATTRIBUTES_CLASSES, CLASSES } from './universe.ts'

type Bound = readonly [key: string, bound: (dice: Dice) => string]

const count =
  (least: number, most: number) =>
  (dice: Dice): string =>
    String(dice.between(least, most))
const gi =
  (least: number, most: number) =>
  (dice: Dice): string =>
    `${dice.between(least, most)}Gi`

/** What a quota that looks at attributes classes may count. */
const CLAIM_BOUNDS: readonly Bound[] = [
  ['requests.storage', gi(10, 80)],
  ['persistentvolumeclaims', count(3, 14)],
]
const AMOUNT_BOUNDS: readonly Bound[] = [
  ['limits.iops', count(1_000, 6_000)],
  ['requests.iops', count(400, 1_200)],
  ['limits.throughput', (dice) => `${dice.between(20, 200)}Mi`],
  ['requests.throughput', (dice) => `${dice.between(10, 60)}Mi`],
]
const OBJECT_BOUNDS: readonly Bound[] = [
  ['count/persistentvolumeclaims', count(4, 14)],
  ['count/pods', count(4, 12)],
  ['count/configmaps', count(2, 8)],
  ['count/leases.coordination.k8s.io', count(0, 3)],
  ['configmaps', count(2, 8)],
  ['secrets', count(0, 4)],
  ['resourcequotas', count(2, 5)],
  ['pods', count(4, 12)],
]
const CLASS_BOUNDS: readonly Bound[] = Object.keys(CLASSES).flatMap((name): Bound[] => [
  [`${name}.storageclass.storage.k8s.io/requests.storage`, gi(5, 40)],
  [`${name}.storageclass.storage.k8s.io/persistentvolumeclaims`, count(1, 6)],
])
const POD_BOUNDS: readonly Bound[] = [
  ['pods', count(3, 10)],
  ['requests.cpu', count(1, 4)],
  ['limits.memory', gi(1, 4)],
]
/** These make every container say how much it wants. */
const RESOURCE_BOUNDS: readonly Bound[] = [
  ['cpu', count(1, 4)],
  ['memory', gi(1, 4)],
  ['requests.cpu', count(1, 4)],
  ['requests.memory', gi(1, 4)],
  ['limits.cpu', count(2, 8)],
  ['limits.memory', gi(1, 8)],
  ['requests.ephemeral-storage', gi(1, 4)],
  ['limits.ephemeral-storage', gi(1, 4)],
  ['requests.hugepages-2Mi', gi(1, 2)],
  ['requests.example.com/gpu', count(0, 2)],
]

const POD_SCOPES = ['Terminating', 'NotTerminating', 'NotBestEffort', 'CrossNamespacePodAffinity'] as const

export function createQuota(draft: Draft): PeopleAct {
  const { dice, quotas } = draft
  const of = freshName(dice, quotas, () => someQuota(dice))
  if (!quotas.has(keyOf(of))) quotas.set(keyOf(of), of)
  return { do: 'create', kind: 'quota', object: { metadata: { ...of }, spec: quotaSpec(draft) } }
}

function quotaSpec(draft: Draft) {
  const { dice, hasAmounts } = draft
  const claimBounds = hasAmounts ? [...CLAIM_BOUNDS, ...AMOUNT_BOUNDS] : CLAIM_BOUNDS
  switch (dice.roll(10)) {
    case 0:
    case 1:
      return { hard: someOf(dice, claimBounds), scopeSelector: attributesSelector(dice) }
    case 2:
      return { hard: someOf(dice, CLAIM_BOUNDS), scopes: ['VolumeAttributesClass'] }
    case 3:
      return podQuota(dice)
    case 4:
      return { hard: someOf(dice, RESOURCE_BOUNDS) }
    default:
      return { hard: someOf(dice, [...claimBounds, ...claimBounds, ...OBJECT_BOUNDS, ...CLASS_BOUNDS]) }
  }
}

function podQuota(dice: Dice) {
  if (dice.chance(0.3)) return { hard: { pods: String(dice.between(2, 6)) }, scopes: ['BestEffort'] }
  const hard = someOf(dice, POD_BOUNDS)
  if (dice.chance(0.7)) return { hard, scopes: [dice.pick(POD_SCOPES)] }
  return { hard, scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'DoesNotExist' }] } }
}

function attributesSelector(dice: Dice) {
  const operator = dice.pick(['In', 'NotIn', 'Exists', 'DoesNotExist'])
  const hasValues = operator === 'In' || operator === 'NotIn'
  const values = hasValues ? { values: [dice.pick(Object.keys(ATTRIBUTES_CLASSES))] } : {}
  return { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator, ...values }] }
}

const someOf = (dice: Dice, bounds: readonly Bound[]): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: dice.between(1, 3) }, () => dice.pick(bounds)).map(([key, bound]) => [key, bound(dice)]),
  )

/** Bounds are also lowered below what is used, and mostly raised again. */
export function editQuota(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = likely(dice, draft.quotas, () => someQuota(dice))
  const edit = (why: string, hard: object): PeopleAct => ({
    do: 'edit',
    kind: 'quota',
    of,
    patch: { spec: { hard } },
    why,
  })
  if (dice.chance(0.4)) {
    const key = dice.pick(['persistentvolumeclaims', 'requests.storage', 'pods'])
    draft.later(dice.between(30, 400) * 1_000, edit('raise', { [key]: key === 'requests.storage' ? '200Gi' : '40' }))
    return edit('lower', { [key]: key === 'requests.storage' ? '2Gi' : '1' })
  }
  if (dice.chance(0.2)) {
    const patch = { spec: { scopeSelector: dice.chance(0.5) ? attributesSelector(dice) : null } }
    return { do: 'edit', kind: 'quota', of, patch, why: 'selector' }
  }
  return edit('bounds', someOf(dice, [...CLAIM_BOUNDS, ...OBJECT_BOUNDS, ...CLASS_BOUNDS]))
}

export function deleteQuota(draft: Draft): PeopleAct {
  const { dice, quotas } = draft
  const of = likely(dice, quotas, () => someQuota(dice))
  quotas.delete(keyOf(of))
  return { do: 'delete', kind: 'quota', of }
}

export function changeLimitRange(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = { namespace: someNamespace(dice), name: `l${dice.roll(2)}` }
  const what = dice.roll(6)
  if (what < 2) return { do: 'delete', kind: 'limit range', of }
  const spec = { limits: [limitItem(draft)] }
  if (what === 2) return { do: 'edit', kind: 'limit range', of, patch: { spec }, why: 'bounds' }
  return { do: 'create', kind: 'limit range', object: { metadata: { ...of }, spec } }
}

function limitItem({ dice, hasAmounts }: Draft) {
  if (dice.chance(0.2)) return { type: 'Container', default: { cpu: '200m' }, defaultRequest: { cpu: '100m' } }
  const storage = { max: { storage: `${dice.between(8, 30)}Gi` }, min: { storage: '1Gi' } }
  if (!hasAmounts || dice.chance(0.6)) return { type: 'PersistentVolumeClaim', ...storage }
  return {
    type: dice.pick(['PersistentVolumeClaim', 'Container']),
    max: { iops: '3000' },
    ...(dice.chance(0.5) ? { defaultRequest: { iops: '400' }, default: { iops: '2000' } } : {}),
  }
}
