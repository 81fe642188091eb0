// What users do with claims: ask for every kind of storage there is and for some that there is not, change their minds
// about size and attributes, and give up.
import type { Dice } from './dice.ts'
import { type Draft, freshName, isForBlock, keyOf, likely, someClaim, someClaimName, someVolumeName } from './draft.ts'
import { nonsenseOf } from './nonsense.ts'
import type { Named, ObjectText, PeopleAct } from './plan.ts'
import { CLASSES, NET_MAXIMUM_GI } from './universe.ts'

/** No such class exists: claims of it get volumes that were made by hand, those of the other get none. */
export const SHELF = 'shelf'
const NOWHERE = 'nowhere'
export const SELECTED = { tier: 'chosen' }
const HOLD = 'people.example/hold'

const MINUTE_MS = 60_000

interface ClaimText {
  readonly object: { readonly metadata: Named; readonly spec: ObjectText }
  readonly className: string | undefined
  readonly sizeGi: number
}

export function createClaim(draft: Draft): PeopleAct {
  const { dice, claims } = draft
  const of = freshName(dice, claims, () => someClaim(dice))
  const { object, className, sizeGi } = claimText(draft, of)
  if (!claims.has(keyOf(of))) claims.set(keyOf(of), { of, className, sizeGi })
  return { do: 'create', kind: 'claim', object: { ...object } }
}

export function writeNonsense(draft: Draft): PeopleAct {
  const of = someClaim(draft.dice)
  return nonsenseOf(draft.dice, claimText(draft, of).object)
}

function claimText(draft: Draft, of: Named): ClaimText {
  const { dice } = draft
  const isBlock = isForBlock(of.name) ? dice.chance(0.8) : dice.chance(0.02)
  const { spec, className, sizeGi } = claimSpec(draft, { isBlock })
  const origin = dice.fraction()
  const from =
    origin < 0.06
      ? { storageClassName: dice.pick([SHELF, '']), volumeName: someVolumeName(dice) }
      : origin < 0.11
        ? { storageClassName: dice.pick([SHELF, SHELF, 'net-now']), selector: { matchLabels: SELECTED } }
        : origin < 0.2
          ? { dataSource: { kind: 'PersistentVolumeClaim', name: someClaimName(dice) } }
          : {}
  const metadata = { ...of, ...(dice.chance(0.1) ? { labels: { app: dice.pick(['db', 'web']) } } : {}) }
  return { object: { metadata, spec: { ...spec, ...from } }, className, sizeGi }
}

/** As it stands in a claim, or in a pod for the claim that is made with it. Most ask for what can be had. */
export function claimSpec(draft: Draft, { isBlock = false } = {}) {
  const { dice } = draft
  const isModest = dice.chance(0.6)
  const className = dice.weighted(isModest ? CLASSES_THAT_GIVE : [...CLASSES_THAT_GIVE, ...CLASSES_THAT_MAY_NOT])
  const attributes = dice.chance(isModest ? 0.15 : 0.45) ? someAttributes(draft, className) : undefined
  const sizeGi = isModest ? dice.between(1, 4) : dice.weighted(sizes(dice))
  const spec = {
    accessModes: dice.weighted(ACCESS_MODES),
    ...(className === undefined ? {} : { storageClassName: className }),
    ...(attributes ? { volumeAttributesClassName: attributes } : {}),
    ...(isBlock ? { volumeMode: 'Block' } : {}),
    resources: resourcesOf(draft, `${sizeGi}Gi`),
  }
  return { spec, className, sizeGi }
}

type Weights<T> = readonly (readonly [weight: number, value: T])[]

const CLASSES_THAT_GIVE: Weights<string | undefined> = [
  [6, 'net-now'],
  [4, 'net-wait'],
  [4, 'local-wait'],
  [3, 'local-now'],
  [3, 'net-keep'],
  [2, 'basic'],
]
const CLASSES_THAT_MAY_NOT: Weights<string | undefined> = [
  [6, SHELF],
  [2, ''],
  [4, undefined],
  [2, NOWHERE],
]
const ACCESS_MODES: Weights<readonly string[]> = [
  [14, ['ReadWriteOnce']],
  [3, ['ReadWriteMany']],
  [2, ['ReadWriteOncePod']],
  [1, ['ReadWriteOnce', 'ReadOnlyMany']],
]
const sizes = (dice: Dice): Weights<number> => [
  [16, dice.between(1, 6)],
  [4, dice.between(7, NET_MAXIMUM_GI)],
  [2, dice.between(NET_MAXIMUM_GI + 1, 20)],
  [0.5, 300],
]

function resourcesOf({ dice, hasAmounts }: Draft, storage: string) {
  if (!hasAmounts || dice.chance(0.75)) return { requests: { storage } }
  const requests = {
    storage,
    ...(dice.chance(0.7) ? { iops: dice.pick(IOPS) } : {}),
    ...(dice.chance(0.5) ? { throughput: dice.pick(THROUGHPUT) } : {}),
  }
  return { requests, ...(dice.chance(0.4) ? { limits: { iops: '2000', throughput: '200Mi' } } : {}) }
}

const IOPS = ['300', '500', '700', '1000'] as const
const THROUGHPUT = ['10Mi', '20Mi', '50'] as const

/** Mostly of the driver that the class has; some of another, some that are missing. */
function someAttributes({ dice }: Draft, className: string | undefined): string {
  const driver = CLASSES[className ?? '']?.provisioner
  if (driver === 'local.sim') return dice.pick(['quick', 'quick', 'quick', 'gold'])
  return dice.weighted([
    [5, 'silver'],
    [5, 'gold'],
    [1, 'late'],
    [1, 'odd'],
    [0.5, 'quick'],
    [0.5, 'missing'],
  ])
}

const editClaim = (of: Named, why: string, patch: ObjectText): PeopleAct => ({
  do: 'edit',
  kind: 'claim',
  of,
  patch,
  why,
})
const requests = (amounts: object): ObjectText => ({ spec: { resources: { requests: amounts } } })

/** Mostly one whose volume can change, of a class that makes them at once. */
function changeable({ dice, claims }: Draft): Named {
  const known = [...claims].filter(([, { className }]) => {
    const facts = CLASSES[className ?? '']
    return facts?.allowVolumeExpansion && facts.volumeBindingMode === 'Immediate'
  })
  return likely(dice, dice.chance(0.7) ? new Map(known) : claims, () => someClaim(dice))
}

/** What cannot be had is given up a while later, wholly or in part, most of the time. */
export function grow(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = changeable(draft)
  const claim = draft.claims.get(keyOf(of))
  const hasGi = claim?.sizeGi ?? 1
  const isTooMuch = dice.chance(0.25)
  const wantsGi = isTooMuch ? NET_MAXIMUM_GI + dice.between(1, 12) : hasGi + dice.between(1, 4)
  if (isTooMuch && dice.chance(0.8)) draft.later(dice.between(20, 300) * 1_000, lowerTo(draft, of, hasGi))
  else if (claim) claim.sizeGi = wantsGi
  return editClaim(of, 'grow', requests({ storage: `${wantsGi}Gi` }))
}

function lowerTo({ dice }: Draft, of: Named, hasGi: number): PeopleAct {
  if (dice.chance(0.3)) return { do: 'go back', of }
  return editClaim(of, 'lower', requests({ storage: `${hasGi + dice.roll(3)}Gi` }))
}

export function lower(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = likely(dice, draft.claims, () => someClaim(dice))
  const hasGi = draft.claims.get(keyOf(of))?.sizeGi ?? 3
  return editClaim(of, 'lower', requests({ storage: `${Math.max(1, hasGi - dice.between(1, 3))}Gi` }))
}

export function modify(draft: Draft): PeopleAct {
  const { dice, hasAmounts } = draft
  const of = changeable(draft)
  const claim = draft.claims.get(keyOf(of))
  const volumeAttributesClassName = someAttributes(draft, claim?.className)
  if (dice.chance(0.25)) draft.later(dice.between(1, 240) * 1_000, { do: 'go back', of })
  const what = dice.roll(10)
  if (what < 5 || !hasAmounts) return editClaim(of, 'modify', { spec: { volumeAttributesClassName } })
  const amounts = {
    ...(dice.chance(0.7) ? { iops: dice.pick([...IOPS, null]) } : {}),
    ...(dice.chance(0.6) ? { throughput: dice.pick([...THROUGHPUT, null]) } : {}),
  }
  if (what < 8) return editClaim(of, 'amounts', requests(amounts))
  const wantsGi = (claim?.sizeGi ?? 1) + dice.between(1, 3)
  if (claim) claim.sizeGi = wantsGi
  const resources = { requests: { storage: `${wantsGi}Gi`, ...amounts } }
  return editClaim(of, 'modify and grow', { spec: { volumeAttributesClassName, resources } })
}

export function goBack(draft: Draft): PeopleAct {
  return { do: 'go back', of: likely(draft.dice, draft.claims, () => someClaim(draft.dice)) }
}

export function touchClaim(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = likely(dice, draft.claims, () => someClaim(dice))
  const what = dice.roll(8)
  const value = String(dice.roll(100))
  if (what < 4) return editClaim(of, 'label', { metadata: { labels: { touched: value } } })
  if (what < 7) return editClaim(of, 'annotate', { metadata: { annotations: { 'people.example/note': value } } })
  const letGo = { metadata: { '$deleteFromPrimitiveList/finalizers': [HOLD] } }
  draft.later(dice.between(1, 5) * MINUTE_MS, editClaim(of, 'let go', letGo))
  return editClaim(of, 'hold', { metadata: { finalizers: [HOLD] } })
}

export function deleteClaim(draft: Draft): PeopleAct {
  const { dice, claims } = draft
  const of = likely(dice, claims, () => someClaim(dice))
  const { className = '' } = claims.get(keyOf(of)) ?? {}
  if (CLASSES[className]?.reclaimPolicy === 'Retain') draft.released.push(of)
  claims.delete(keyOf(of))
  return { do: 'delete', kind: 'claim', of, ...(dice.chance(0.1) ? { propagation: 'Foreground' } : {}) }
}
