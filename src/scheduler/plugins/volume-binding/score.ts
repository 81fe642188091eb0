// Scores a node by the utilization of its storage. An annotation of the class selects `spread`, which prefers the node with
// the lowest utilization, or `pack`, which prefers the highest. If existing volumes would be bound, the score depends only
// on the share of them that is requested; volumes to provision are ignored.

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { SCORE_MAX } from '../../framework/plugin.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import type { Reservations } from './capacity/reservations.ts'
import type { NodePlan } from './node-planner.ts'

/** Annotation of a StorageClass: `spread` (the default) or `pack`. */
export const CAPACITY_PREFERENCE = 'scheduling.stowage.dev/capacity'

interface Usage {
  readonly storageClass: Readonly<StorageClass>
  requestedBytes: bigint
  capacityBytes: bigint
}

export function scorePlan(plan: NodePlan, reservations: Reservations | undefined): number {
  const usageByClass = plan.bindings.length > 0 ? usageOfExistingVolumes(plan) : usageOfNewVolumes(plan, reservations)
  if (usageByClass.size === 0) return 0
  let sum = 0
  for (const usage of usageByClass.values()) sum += scoreUsage(usage)
  return Math.round(sum / usageByClass.size)
}

function usageOfExistingVolumes({ bindings }: NodePlan): Map<string, Usage> {
  const usageByClass = new Map<string, Usage>()
  for (const { claim, volume } of bindings) {
    const usage = usageOf(usageByClass, claim.storageClass)
    usage.requestedBytes += claim.bytes
    usage.capacityBytes += quantityToBytes(volume.spec?.capacity?.storage ?? '0')
  }
  return usageByClass
}

function usageOfNewVolumes({ provisions }: NodePlan, reservations: Reservations | undefined): Map<string, Usage> {
  const usageByClass = new Map<string, Usage>()
  const ownClaims = provisions.map(({ claim }) => claim.key)
  for (const { claim, report } of provisions) {
    if (!report) continue
    const usage = usageOf(usageByClass, claim.storageClass)
    usage.requestedBytes += claim.bytes
    usage.capacityBytes = freeBytesOf(report) - (reservations?.reservedForOthers(report, ownClaims) ?? 0n)
  }
  return usageByClass
}

/** Uses the maximum volume size as an estimate if the driver does not report its capacity. */
const freeBytesOf = ({ capacityBytes, maximumBytes }: CapacityReport): bigint => capacityBytes ?? maximumBytes ?? 0n

function usageOf(usageByClass: Map<string, Usage>, storageClass: Readonly<StorageClass>): Usage {
  const name = storageClass.metadata.name
  return getOrCreate(usageByClass, name, () => ({ storageClass, requestedBytes: 0n, capacityBytes: 0n }))
}

function scoreUsage({ storageClass, requestedBytes, capacityBytes }: Usage): number {
  const isFull = capacityBytes <= 0n || requestedBytes > capacityBytes
  const utilization = isFull ? SCORE_MAX : percentOf(requestedBytes, capacityBytes)
  return annotationOf(storageClass, CAPACITY_PREFERENCE) === 'pack' ? utilization : SCORE_MAX - utilization
}

/** Below this, the product with SCORE_MAX is exact in floating point. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER) / BigInt(SCORE_MAX)

const percentOf = (part: bigint, whole: bigint): number =>
  whole < EXACT_MAX
    ? Math.floor((Number(part) * SCORE_MAX) / Number(whole))
    : Number((part * BigInt(SCORE_MAX)) / whole)
