// Actions of users on claims: create claims, including impossible ones, change size, attributes and metadata, revert, and delete.

import { CLASSES, NET_MAXIMUM_GI } from '../plan/catalog.ts'
import type { Manifest, Ref, UserAction } from '../plan/plan.ts'
import {
  type Draft,
  isBlockName,
  keyOf,
  pickName,
  pickObject,
  someClaim,
  someClaimName,
  someNamespace,
  someVolumeName,
} from './draft.ts'
import { generateInvalidAction } from './invalid-objects.ts'
import type { Rng } from './rng.ts'

/** Classes that do not exist. Claims of the first one bind to static volumes; claims of the second one stay Pending. */
export const STATIC_CLASS = 'static'
const MISSING_CLASS = 'nowhere'
export const SELECTED_LABELS = { tier: 'chosen' }
const HOLD = 'sim.example/hold'

const MINUTE_MS = 60_000

interface ClaimManifest {
  readonly object: { readonly metadata: Ref; readonly spec: Manifest }
  readonly className: string | undefined
  readonly sizeGi: number
}

export function createClaim(draft: Draft): UserAction {
  const { rng, claims } = draft
  const ref = pickName(rng, claims, () => someClaim(rng))
  const { object, className, sizeGi } = generateClaim(draft, ref)
  if (!claims.has(keyOf(ref))) claims.set(keyOf(ref), { ref, className, sizeGi })
  return { do: 'create', kind: 'claim', object: { ...object } }
}

/** Creates a claim of a class for which several processes compete, of the in-process plugin, or with mirrored volumes. */
export const createContendedClaim = (draft: Draft): UserAction => createClaimOf(draft, CONTENDED_CLASSES)

/** Creates a claim of a class with delayed binding, whose node a pod determines. */
export const createDelayedClaim = (draft: Draft): UserAction => createClaimOf(draft, DELAYED_CLASSES)

/** Creates a claim whose volume other nodes may need when its node is lost, or whose volume is lost with it. */
export const createLosableClaim = (draft: Draft): UserAction => createClaimOf(draft, LOSABLE_CLASSES)

function createClaimOf(draft: Draft, classes: Weights<string>): UserAction {
  const { rng, claims } = draft
  const ref = pickName(rng, claims, () => someClaim(rng))
  const { object, sizeGi } = generateClaim(draft, ref)
  const className = rng.pickWeighted(classes)
  const { volumeAttributesClassName: _, ...spec } = object.spec
  if (!claims.has(keyOf(ref))) claims.set(keyOf(ref), { ref, className, sizeGi })
  return { do: 'create', kind: 'claim', object: { ...object, spec: { ...spec, storageClassName: className } } }
}

/** Creates several claims in one transaction, which a quota accepts or rejects as a whole. */
export function createClaimsTogether(draft: Draft): UserAction {
  const { rng, claims } = draft
  const namespace = someNamespace(rng)
  const refs = [someClaimName(rng), someClaimName(rng)].map((name) => ({ namespace, name }))
  const objects = refs.map((ref) => generateClaim(draft, ref))
  for (const [index, ref] of refs.entries()) {
    const { className, sizeGi } = objects[index]!
    if (!claims.has(keyOf(ref))) claims.set(keyOf(ref), { ref, className, sizeGi })
  }
  return { do: 'create together', kind: 'claim', objects: objects.map(({ object }) => ({ ...object })) }
}

/** Creates a claim in a dry run, which must charge no quota. */
export function dryRunClaim(draft: Draft): UserAction {
  const { object } = generateClaim(draft, someClaim(draft.rng))
  return { do: 'create', kind: 'claim', object: { ...object }, dryRun: true }
}

export function writeInvalidClaim(draft: Draft): UserAction {
  const ref = someClaim(draft.rng)
  return generateInvalidAction(draft.rng, generateClaim(draft, ref).object)
}

function generateClaim(draft: Draft, ref: Ref): ClaimManifest {
  const { rng } = draft
  const isBlock = isBlockName(ref.name) ? rng.chance(0.8) : rng.chance(0.02)
  const { spec, className, sizeGi } = generateClaimSpec(draft, { isBlock })
  const roll = rng.fraction()
  const origin =
    roll < 0.06
      ? { storageClassName: rng.pick([STATIC_CLASS, '']), volumeName: someVolumeName(rng) }
      : roll < 0.11
        ? {
            storageClassName: rng.pick([STATIC_CLASS, STATIC_CLASS, 'net-now']),
            selector: { matchLabels: SELECTED_LABELS },
          }
        : roll < 0.2
          ? { dataSource: { kind: 'PersistentVolumeClaim', name: someClaimName(rng) } }
          : {}
  const metadata = { ...ref, ...(rng.chance(0.1) ? { labels: { app: rng.pick(['db', 'web']) } } : {}) }
  return { object: { metadata, spec: { ...spec, ...origin } }, className, sizeGi }
}

/** Generates the spec of a claim, or of an ephemeral volume's template. Most requests can be satisfied. */
export function generateClaimSpec(draft: Draft, { isBlock = false } = {}) {
  const { rng } = draft
  const isModest = rng.chance(0.6)
  const className = rng.pickWeighted(isModest ? PROVISIONING_CLASSES : [...PROVISIONING_CLASSES, ...OTHER_CLASSES])
  const attributes = rng.chance(isModest ? 0.15 : 0.45) ? someAttributes(draft, className) : undefined
  const sizeGi = isModest ? rng.between(1, 4) : rng.pickWeighted(weighSizes(rng))
  const spec = {
    accessModes: rng.pickWeighted(ACCESS_MODES),
    ...(className === undefined ? {} : { storageClassName: className }),
    ...(attributes ? { volumeAttributesClassName: attributes } : {}),
    ...(isBlock ? { volumeMode: 'Block' } : {}),
    resources: generateResources(draft, `${sizeGi}Gi`),
  }
  return { spec, className, sizeGi }
}

type Weights<T> = readonly (readonly [weight: number, value: T])[]

const PROVISIONING_CLASSES: Weights<string | undefined> = [
  [6, 'net-now'],
  [4, 'net-wait'],
  [4, 'local-wait'],
  [3, 'local-now'],
  [3, 'net-keep'],
  [2, 'basic'],
]
const OTHER_CLASSES: Weights<string | undefined> = [
  [6, STATIC_CLASS],
  [2, ''],
  [4, undefined],
  [2, MISSING_CLASS],
]
const CONTENDED_CLASSES: Weights<string> = [
  [5, 'net-now'],
  [2, 'net-wait'],
  [6, STATIC_CLASS],
  [4, 'memory'],
  [4, 'local-mirrored'],
]
const DELAYED_CLASSES: Weights<string> = [
  [3, 'net-wait'],
  [3, 'local-wait'],
]
const LOSABLE_CLASSES: Weights<string> = [
  [4, 'net-wait'],
  [3, 'net-now'],
  [3, 'local-wait'],
  [1, 'local-now'],
  [3, 'local-mark'],
  [3, 'local-drop'],
  [1, 'local-kept'],
]
const ACCESS_MODES: Weights<readonly string[]> = [
  [14, ['ReadWriteOnce']],
  [3, ['ReadWriteMany']],
  [2, ['ReadWriteOncePod']],
  [1, ['ReadWriteOnce', 'ReadOnlyMany']],
]
const weighSizes = (rng: Rng): Weights<number> => [
  [16, rng.between(1, 6)],
  [4, rng.between(7, NET_MAXIMUM_GI)],
  [2, rng.between(NET_MAXIMUM_GI + 1, 20)],
  [0.5, 300],
]

function generateResources({ rng, hasAmounts }: Draft, storage: string) {
  if (!hasAmounts || rng.chance(0.75)) return { requests: { storage } }
  const requests = {
    storage,
    ...(rng.chance(0.7) ? { iops: rng.pick(IOPS) } : {}),
    ...(rng.chance(0.5) ? { throughput: rng.pick(THROUGHPUT) } : {}),
  }
  return { requests, ...(rng.chance(0.4) ? { limits: { iops: '2000', throughput: '200Mi' } } : {}) }
}

const IOPS = ['300', '500', '700', '1000'] as const
const THROUGHPUT = ['10Mi', '20Mi', '50'] as const

/** Returns an attributes class: mostly of the claim's driver, sometimes of another, or a missing one. */
function someAttributes({ rng }: Draft, className: string | undefined): string {
  const driver = CLASSES[className ?? '']?.provisioner
  if (driver === 'local.sim') return rng.pick(['quick', 'quick', 'quick', 'gold'])
  return rng.pickWeighted([
    [5, 'silver'],
    [5, 'gold'],
    [1, 'late'],
    [1, 'odd'],
    [0.5, 'quick'],
    [0.5, 'missing'],
  ])
}

const editClaim = (ref: Ref, purpose: string, patch: Manifest): UserAction => ({
  do: 'edit',
  kind: 'claim',
  ref,
  patch,
  purpose,
})
const requestsPatch = (amounts: object): Manifest => ({ spec: { resources: { requests: amounts } } })

/** Returns a claim, mostly of a class with immediate binding and expansion. */
function someChangeableClaim({ rng, claims }: Draft): Ref {
  const candidates = [...claims].filter(([, { className }]) => {
    const facts = CLASSES[className ?? '']
    return facts?.allowVolumeExpansion && facts.volumeBindingMode === 'Immediate'
  })
  return pickObject(rng, rng.chance(0.7) ? new Map(candidates) : claims, () => someClaim(rng))
}

/** Expands a claim. An impossible size is lowered or reverted later in most cases. */
export function growClaim(draft: Draft): UserAction {
  const { rng } = draft
  const ref = someChangeableClaim(draft)
  const claim = draft.claims.get(keyOf(ref))
  const currentGi = claim?.sizeGi ?? 1
  const isTooMuch = rng.chance(0.25)
  const requestedGi = isTooMuch ? NET_MAXIMUM_GI + rng.between(1, 12) : currentGi + rng.between(1, 4)
  if (isTooMuch && rng.chance(0.8)) draft.addLater(rng.between(20, 300) * 1_000, lowerOrRevert(draft, ref, currentGi))
  else if (claim) claim.sizeGi = requestedGi
  return editClaim(ref, 'grow', requestsPatch({ storage: `${requestedGi}Gi` }))
}

function lowerOrRevert({ rng }: Draft, ref: Ref, currentGi: number): UserAction {
  if (rng.chance(0.3)) return { do: 'revert', ref }
  return editClaim(ref, 'lower', requestsPatch({ storage: `${currentGi + rng.below(3)}Gi` }))
}

export function lowerClaim(draft: Draft): UserAction {
  const { rng } = draft
  const ref = pickObject(rng, draft.claims, () => someClaim(rng))
  const currentGi = draft.claims.get(keyOf(ref))?.sizeGi ?? 3
  return editClaim(ref, 'lower', requestsPatch({ storage: `${Math.max(1, currentGi - rng.between(1, 3))}Gi` }))
}

export function modifyClaim(draft: Draft): UserAction {
  const { rng, hasAmounts } = draft
  const ref = someChangeableClaim(draft)
  const claim = draft.claims.get(keyOf(ref))
  const volumeAttributesClassName = someAttributes(draft, claim?.className)
  if (rng.chance(0.25)) draft.addLater(rng.between(1, 240) * 1_000, { do: 'revert', ref })
  const choice = rng.below(10)
  if (choice < 5 || !hasAmounts) return editClaim(ref, 'modify', { spec: { volumeAttributesClassName } })
  const amounts = {
    ...(rng.chance(0.7) ? { iops: rng.pick([...IOPS, null]) } : {}),
    ...(rng.chance(0.6) ? { throughput: rng.pick([...THROUGHPUT, null]) } : {}),
  }
  if (choice < 8) return editClaim(ref, 'amounts', requestsPatch(amounts))
  const requestedGi = (claim?.sizeGi ?? 1) + rng.between(1, 3)
  if (claim) claim.sizeGi = requestedGi
  const resources = { requests: { storage: `${requestedGi}Gi`, ...amounts } }
  return editClaim(ref, 'modify and grow', { spec: { volumeAttributesClassName, resources } })
}

export function revertClaim(draft: Draft): UserAction {
  return { do: 'revert', ref: pickObject(draft.rng, draft.claims, () => someClaim(draft.rng)) }
}

export function touchClaim(draft: Draft): UserAction {
  const { rng } = draft
  const ref = pickObject(rng, draft.claims, () => someClaim(rng))
  const choice = rng.below(8)
  const value = String(rng.below(100))
  if (choice < 4) return editClaim(ref, 'label', { metadata: { labels: { touched: value } } })
  if (choice < 7) return editClaim(ref, 'annotate', { metadata: { annotations: { 'sim.example/note': value } } })
  const releaseHold = { metadata: { '$deleteFromPrimitiveList/finalizers': [HOLD] } }
  draft.addLater(rng.between(1, 5) * MINUTE_MS, editClaim(ref, 'release hold', releaseHold))
  return editClaim(ref, 'hold', { metadata: { finalizers: [HOLD] } })
}

export function deleteClaim(draft: Draft): UserAction {
  const { rng, claims } = draft
  const ref = pickObject(rng, claims, () => someClaim(rng))
  const { className = '' } = claims.get(keyOf(ref)) ?? {}
  if (CLASSES[className]?.reclaimPolicy === 'Retain') draft.releasedClaims.push(ref)
  claims.delete(keyOf(ref))
  return { do: 'delete', kind: 'claim', ref, ...(rng.chance(0.1) ? { propagation: 'Foreground' } : {}) }
}
