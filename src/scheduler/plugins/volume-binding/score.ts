// Scores a node by how full its storage would be. `spread` prefers the emptiest node, `pack` the fullest that still fits;
// the class says which by annotation. If existing volumes would be bound, only how much of them is used counts, and
// volumes to provision are omitted.

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { SCORE_MAX } from '../../framework/plugin.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import type { Reservations } from './capacity/reservations.ts'
import type { NodePlan } from './node-planner.ts'

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

function usesOfNew({ provision }: NodePlan, reservations: Reservations | undefined): Map<string, Use> {
  const uses = new Map<string, Use>()
  const own = provision.map(({ claim }) => claim.key)
  for (const { claim, report } of provision) {
    if (!report) continue
    const use = useOf(uses, claim.storageClass)
    use.requested += claim.bytes
    use.capacity = freeIn(report) - (reservations?.reservedForOthers(report, own) ?? 0n)
  }
  return uses
}

/** If a driver reports only the maximum volume size, that is the best estimate of the free space. */
const freeIn = ({ capacityBytes, maximumBytes }: CapacityReport): bigint => capacityBytes ?? maximumBytes ?? 0n

function useOf(uses: Map<string, Use>, storageClass: Readonly<StorageClass>): Use {
  const name = storageClass.metadata.name ?? ''
  return getOrCreate(uses, name, () => ({ storageClass, requested: 0n, capacity: 0n }))
}

function pointsOf({ storageClass, requested, capacity }: Use): number {
  const isFull = capacity <= 0n || requested > capacity
  const utilization = isFull ? SCORE_MAX : percentOf(requested, capacity)
  return annotationOf(storageClass, CAPACITY_PREFERENCE) === 'pack' ? utilization : SCORE_MAX - utilization
}

/** Below this, the product with SCORE_MAX is exact in floating point. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER) / BigInt(SCORE_MAX)

const percentOf = (part: bigint, whole: bigint): number =>
  whole < EXACT_MAX
    ? Math.floor((Number(part) * SCORE_MAX) / Number(whole))
    : Number((part * BigInt(SCORE_MAX)) / whole)
