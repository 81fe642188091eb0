// The state of plan generation: what probably exists, so that most actions have a target, and follow-up actions. Generation
// never reads a running system; the run shows whether an action finds its target.

import { NAMESPACES } from '../plan/catalog.ts'
import type { Ref, Setup, UserAction } from '../plan/plan.ts'
import type { Rng } from './rng.ts'

export interface Draft {
  readonly rng: Rng
  readonly setup: Setup
  /** Only a server with transactions accepts iops and throughput of claims. */
  readonly hasAmounts: boolean
  readonly nodes: readonly string[]
  /** By `namespace/name`. */
  readonly claims: Map<string, LikelyClaim>
  readonly pods: Map<string, Ref>
  readonly quotas: Map<string, Ref>
  /** Names of statically created volumes. */
  readonly volumes: Set<string>
  /** Deleted claims whose volumes are retained. */
  readonly released: Ref[]
  /** The number of volumes imported so far. */
  imports: number
  /** Adds an action `ms` after the one that is being generated. */
  later(ms: number, action: UserAction): void
}

export interface LikelyClaim {
  readonly ref: Ref
  readonly className: string | undefined
  sizeGi: number
}

const CLAIMS = 8
const PODS = 6
const STATIC_VOLUMES = 4
const QUOTAS = 3

export const keyOf = ({ namespace, name }: Ref): string => (namespace ? `${namespace}/${name}` : name)

/** Mostly the first namespace. */
export const someNamespace = (rng: Rng): string => (rng.chance(0.6) ? NAMESPACES[0] : NAMESPACES[1])

export const someClaimName = (rng: Rng): string => `c${rng.below(CLAIMS)}`
export const somePodName = (rng: Rng): string => `p${rng.below(PODS)}`
export const someVolumeName = (rng: Rng): string => `s${rng.below(STATIC_VOLUMES)}`
export const someQuotaName = (rng: Rng): string => `q${rng.below(QUOTAS)}`

/** Whether claims of this name are mostly used as block devices. */
export const isForBlock = (claimName: string): boolean => claimName === `c${CLAIMS - 1}`

/** Mostly an unused name, sometimes a used one. */
export function freshName(rng: Rng, taken: ReadonlyMap<string, unknown>, some: () => Ref): Ref {
  const tries = rng.chance(0.85) ? 6 : 1
  let named = some()
  for (let left = tries - 1; left > 0 && taken.has(keyOf(named)); left--) named = some()
  return named
}

/** Mostly an existing object, sometimes any. */
export function likely<T extends { readonly ref: Ref } | Ref>(
  rng: Rng,
  known: ReadonlyMap<string, T>,
  some: () => Ref,
): Ref {
  if (known.size === 0 || rng.chance(0.1)) return some()
  const found = rng.pick([...known.values()])
  return 'ref' in found ? found.ref : found
}

export const someClaim = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: someClaimName(rng) })
export const somePod = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: somePodName(rng) })
export const someQuota = (rng: Rng): Ref => ({ namespace: someNamespace(rng), name: someQuotaName(rng) })
