// The state of plan generation: the objects that probably exist, from which most actions choose a target, and follow-up
// actions. Plans are generated without a running system; only the run shows whether an action finds its target.

import { NAMESPACES } from '../plan/catalog.ts'
import type { Ref, Setup, UserAction } from '../plan/plan.ts'
import type { Rng } from './rng.ts'

export interface Draft {
  readonly rng: Rng
  readonly setup: Setup
  /** Whether claims may request iops and throughput: only a server with transactions accepts them. */
  readonly hasAmounts: boolean
  readonly nodes: readonly string[]
  /** By `namespace/name`. */
  readonly claims: Map<string, LikelyClaim>
  readonly pods: Map<string, Ref>
  readonly quotas: Map<string, Ref>
  /** Names of statically created volumes. */
  readonly volumes: Set<string>
  /** Deleted claims whose volumes are retained. */
  readonly releasedClaims: Ref[]
  /** The number of volumes imported so far. */
  imports: number
  /** Adds an action `ms` after the one that is being generated. */
  addLater(ms: number, action: UserAction): void
}

interface LikelyClaim {
  readonly ref: Ref
  readonly className: string | undefined
  sizeGi: number
}

/** How many names there are per kind. With few names, actions often concern the same object. */
const CLAIM_NAME_COUNT = 8
const POD_NAME_COUNT = 6
const STATIC_VOLUME_NAME_COUNT = 4
const QUOTA_NAME_COUNT = 3

export const keyOf = ({ namespace, name }: Ref): string => (namespace ? `${namespace}/${name}` : name)

/** Returns a namespace, mostly the first. */
export const someNamespace = (rng: Rng): string => (rng.chance(0.6) ? NAMESPACES[0] : NAMESPACES[1])

export const someClaimName = (rng: Rng): string => `c${rng.below(CLAIM_NAME_COUNT)}`
const somePodName = (rng: Rng): string => `p${rng.below(POD_NAME_COUNT)}`
export const someVolumeName = (rng: Rng): string => `s${rng.below(STATIC_VOLUME_NAME_COUNT)}`
const someQuotaName = (rng: Rng): string => `q${rng.below(QUOTA_NAME_COUNT)}`

/** Whether claims of this name are mostly used as block devices. */
export const isBlockName = (claimName: string): boolean => claimName === `c${CLAIM_NAME_COUNT - 1}`

/** Returns a name, mostly an unused one. */
export function pickName(rng: Rng, usedNames: ReadonlyMap<string, unknown>, generate: () => Ref): Ref {
  const attempts = rng.chance(0.85) ? 6 : 1
  let candidate = generate()
  for (let remaining = attempts - 1; remaining > 0 && usedNames.has(keyOf(candidate)); remaining--)
    candidate = generate()
  return candidate
}

/** Returns an object, mostly one that probably exists. */
export function pickObject<T extends { readonly ref: Ref } | Ref>(
  rng: Rng,
  existingObjects: ReadonlyMap<string, T>,
  generate: () => Ref,
): Ref {
  if (existingObjects.size === 0 || rng.chance(0.1)) return generate()
  const object = rng.pick([...existingObjects.values()])
  return 'ref' in object ? object.ref : object
}

export const someClaim = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: someClaimName(rng) })
export const somePod = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: somePodName(rng) })
export const someQuota = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: someQuotaName(rng) })
