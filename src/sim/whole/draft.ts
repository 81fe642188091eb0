// What is kept in mind while a plan is made: what probably exists by now, so that most acts hit something, and what
// follows from an act later on. Nobody looks at the system: whether an act finds what it expects, its run will show.
import type { Dice } from './dice.ts'
import type { Named, PeopleAct, Setup } from './plan.ts'
import { NAMESPACES } from './universe.ts'

export interface Draft {
  readonly dice: Dice
  readonly setup: Setup
  /** Only a server with transactions takes iops and throughput of claims. */
  readonly hasAmounts: boolean
  readonly nodes: readonly string[]
  /** By `namespace/name`. */
  readonly claims: Map<string, LikelyClaim>
  readonly pods: Map<string, Named>
  readonly quotas: Map<string, Named>
  /** Made by hand, by name. */
  readonly volumes: Set<string>
  /** Claims that are gone, and whose volumes are kept. */
  readonly released: Named[]
  /** How many volumes were brought into drivers by hand. */
  imports: number
  /** The same person does this a while after the act that is being made. */
  later(ms: number, act: PeopleAct): void
}

export interface LikelyClaim {
  readonly of: Named
  readonly className: string | undefined
  sizeGi: number
}

const CLAIMS = 8
const PODS = 6
const STATIC_VOLUMES = 4
const QUOTAS = 3

export const keyOf = ({ namespace, name }: Named): string => (namespace ? `${namespace}/${name}` : name)

/** Most people work in the first namespace. */
export const someNamespace = (dice: Dice): string => (dice.chance(0.6) ? NAMESPACES[0] : NAMESPACES[1])

export const someClaimName = (dice: Dice): string => `c${dice.roll(CLAIMS)}`
export const somePodName = (dice: Dice): string => `p${dice.roll(PODS)}`
export const someVolumeName = (dice: Dice): string => `s${dice.roll(STATIC_VOLUMES)}`
export const someQuotaName = (dice: Dice): string => `q${dice.roll(QUOTAS)}`

/** Claims that are used as raw devices, mostly. */
export const isForBlock = (claimName: string): boolean => claimName === `c${CLAIMS - 1}`

/** Mostly one that is free; now and then one that is taken. */
export function freshName(dice: Dice, taken: ReadonlyMap<string, unknown>, some: () => Named): Named {
  const tries = dice.chance(0.85) ? 6 : 1
  let named = some()
  for (let left = tries - 1; left > 0 && taken.has(keyOf(named)); left--) named = some()
  return named
}

/** Mostly one that is there; now and then any. */
export function likely<T extends { readonly of: Named } | Named>(
  dice: Dice,
  known: ReadonlyMap<string, T>,
  some: () => Named,
): Named {
  if (known.size === 0 || dice.chance(0.1)) return some()
  const found = dice.pick([...known.values()])
  return 'of' in found ? found.of : found
}

export const someClaim = (dice: Dice): Named => ({ namespace: someNamespace(dice), name: someClaimName(dice) })
export const somePod = (dice: Dice): Named => ({ namespace: someNamespace(dice), name: somePodName(dice) })
export const someQuota = (dice: Dice): Named => ({ namespace: someNamespace(dice), name: someQuotaName(dice) })
