// How good a node is for a pod's volumes: by how full its storage would be. Spreading prefers the emptiest, packing the
// fullest that still fits; a class says which by annotation. Where existing volumes would be bound, what counts is how
// tightly they fit, and volumes that would be made are left out.

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { CapacityReport } from '../../capacity/capacity-report.ts'
import type { Reservations } from '../../capacity/reservations.ts'
import { getOrMake } from '../../get-or-make.ts'
import { SCORE_MAX } from '../../plugin.ts'
import type { NodePlan } from './judge-node.ts'

/** On a StorageClass: `spread` (the default) or `pack`. */
export const CAPACITY_PREFERENCE = 'scheduling.stowage.dev/capacity'

interface Use {
  readonly storageClass: Readonly<StorageClass>
  requested: bigint
  capacity: bigint
}

export function scoreOf(plan: NodePlan, reservations: Reservations | undefined): number {
  const uses = plan.bind.length > 0 ? usesOfExisting(plan) : usesOfNew(plan, reservations)
  if (uses.size === 0) return 0
  let sum = 0
  for (const use of uses.values()) sum += pointsOf(use)
  return Math.round(sum / uses.size)
}

function usesOfExisting({ bind }: NodePlan): Map<string, Use> {
  const uses = new Map<string, Use>()
  for (const { claim, volume } of bind) {
    const use = useOf(uses, claim.storageClass)
    use.requested += claim.bytes
    use.capacity += quantityToBytes(volume.spec?.capacity?.storage ?? '0')
  }
  return uses
}

function usesOfNew({ make }: NodePlan, reservations: Reservations | undefined): Map<string, Use> {
  const uses = new Map<string, Use>()
  const own = make.map(({ claim }) => claim.key)
  for (const { claim, report } of make) {
    if (!report) continue
    const use = useOf(uses, claim.storageClass)
    use.requested += claim.bytes
    use.capacity = freeIn(report) - (reservations?.heldBack(report, own) ?? 0n)
  }
  return uses
}

/** Where a driver tells only how large a volume may be, that is the best guess at what is free. */
const freeIn = ({ capacityBytes, maximumBytes }: CapacityReport): bigint => capacityBytes ?? maximumBytes ?? 0n

function useOf(uses: Map<string, Use>, storageClass: Readonly<StorageClass>): Use {
  const name = storageClass.metadata.name ?? ''
  return getOrMake(uses, name, () => ({ storageClass, requested: 0n, capacity: 0n }))
}

function pointsOf({ storageClass, requested, capacity }: Use): number {
  const isFull = capacity <= 0n || requested > capacity
  const utilization = isFull ? SCORE_MAX : percentOf(requested, capacity)
  return annotationOf(storageClass, CAPACITY_PREFERENCE) === 'pack' ? utilization : SCORE_MAX - utilization
}

/** Below this, a hundred times as much is still an exact number. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER) / BigInt(SCORE_MAX)

const percentOf = (part: bigint, whole: bigint): number =>
  whole < EXACT_MAX
    ? Math.floor((Number(part) * SCORE_MAX) / Number(whole))
    : Number((part * BigInt(SCORE_MAX)) / whole)
