// Scores nodes by their storage. A class with a placement policy ranks the nodes (placement-score.ts). For other classes, nodes
// with a lower utilization score higher. If the plan binds existing volumes, the score depends only on how much of their
// capacity the claims request; volumes to provision are ignored.

import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { Placement } from '../../../volumes/placement.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { SCORE_MAX } from '../../framework/plugin.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import type { Reservations } from './capacity/reservations.ts'
import type { NodePlan } from './node-planner.ts'
import { type NodeStorage, scorePlacement } from './placement-score.ts'

interface Usage {
  readonly storageClass: Readonly<StorageClass>
  requestedBytes: bigint
  /** The free bytes minus those that are reserved for other pods. For existing volumes, their capacity. */
  capacityBytes: bigint
  /** The free bytes according to the report. */
  reportedBytes: bigint
}

export interface ScoreDeps {
  readonly reservations: Reservations | undefined
  /** The placement policies by class. Classes without a policy are absent. */
  readonly placements: ReadonlyMap<string, Placement>
  /** Returns the total size of the driver's volumes that the node can reach. */
  readonly usedBytes: (node: NodeInfo, driver: string) => bigint
}

export interface CandidateNode {
  readonly node: NodeInfo
  readonly plan: NodePlan
}

/** Returns the scores of nodes in the same order: the mean over the classes of the volumes. */
export function scoreNodes(candidates: readonly CandidateNode[], deps: ScoreDeps): number[] {
  const usages = candidates.map(({ plan }) =>
    plan.bindings.length > 0 ? usageOfExistingVolumes(plan) : usageOfNewVolumes(plan, deps.reservations),
  )
  const rankedScores = new Map(
    [...deps.placements].map(([className, placement]) => {
      const storage = candidates.map((candidate, index) => nodeStorage(candidate, usages[index]!.get(className), deps))
      return [className, scorePlacement(placement, storage)]
    }),
  )
  return candidates.map(({ plan }, index) => {
    const usageByClass = usages[index]!
    if (usageByClass.size === 0) return 0
    let sum = 0
    for (const [className, usage] of usageByClass) {
      const ranked = plan.bindings.length > 0 ? undefined : rankedScores.get(className)?.[index]
      sum += ranked ?? SCORE_MAX - utilizationPercent(usage)
    }
    return Math.round(sum / usageByClass.size)
  })
}

/** Returns undefined if the node binds existing volumes, or creates no volume of the class whose capacity is tracked. */
function nodeStorage(
  { node, plan }: CandidateNode,
  usage: Usage | undefined,
  { usedBytes }: ScoreDeps,
): NodeStorage | undefined {
  if (!usage || plan.bindings.length > 0) return undefined
  const { capacityBytes, reportedBytes, requestedBytes, storageClass } = usage
  // A reserved volume may exist before a report includes it, so do not add reserved bytes to the bytes of volumes.
  const knownBytes = capacityBytes + usedBytes(node, storageClass.provisioner)
  // biome-ignore lint/complexity/useMathMinMax: Math.max takes no bigint
  const totalBytes = reportedBytes > knownBytes ? reportedBytes : knownBytes
  return { freeBytes: capacityBytes - requestedBytes, totalBytes }
}

function usageOfExistingVolumes({ bindings }: NodePlan): Map<string, Usage> {
  const usageByClass = new Map<string, Usage>()
  for (const { claim, volume } of bindings) {
    const usage = getOrCreateUsage(usageByClass, claim.storageClass)
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
    const usage = getOrCreateUsage(usageByClass, claim.storageClass)
    usage.requestedBytes += claim.bytes
    usage.reportedBytes = freeBytesOf(report)
    usage.capacityBytes = usage.reportedBytes - (reservations?.reservedForOthers(report, ownClaims) ?? 0n)
  }
  return usageByClass
}

/** Uses the maximum volume size as an estimate if the driver does not report its capacity. */
const freeBytesOf = ({ capacityBytes, maximumBytes }: CapacityReport): bigint => capacityBytes ?? maximumBytes ?? 0n

function getOrCreateUsage(usageByClass: Map<string, Usage>, storageClass: Readonly<StorageClass>): Usage {
  const name = storageClass.metadata.name
  return getOrCreate(usageByClass, name, () => ({
    storageClass,
    requestedBytes: 0n,
    capacityBytes: 0n,
    reportedBytes: 0n,
  }))
}

function utilizationPercent({ requestedBytes, capacityBytes }: Usage): number {
  const isFull = capacityBytes <= 0n || requestedBytes > capacityBytes
  return isFull ? SCORE_MAX : percentOf(requestedBytes, capacityBytes)
}

/** Below this, the product with SCORE_MAX is exact in floating point. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER) / BigInt(SCORE_MAX)

const percentOf = (part: bigint, whole: bigint): number =>
  whole < EXACT_MAX
    ? Math.floor((Number(part) * SCORE_MAX) / Number(whole))
    : Number((part * BigInt(SCORE_MAX)) / whole)
