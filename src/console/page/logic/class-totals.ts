// Adds up the storage of each class: promised to claims, used, and free for new volumes.
import type { CapacityRow } from '../rows/storage.ts'
import type { ClaimView } from './claim-view.ts'

interface ClassTotal {
  readonly name: string
  readonly claims: number
  readonly promisedBytes: number
  /** Undefined if no volume of the class is measured. */
  readonly usedBytes: number | undefined
  readonly measuredClaims: number
  /** Undefined if the driver reports no capacity. Classes of one driver may share it. */
  readonly freeBytes: number | undefined
}

export function totalsByClass(claims: Iterable<ClaimView>, capacities: Iterable<CapacityRow>): ClassTotal[] {
  const totals = new Map<string, { -readonly [K in keyof ClassTotal]: ClassTotal[K] }>()
  const totalOf = (name: string) => {
    let total = totals.get(name)
    if (!total) {
      total = { name, claims: 0, promisedBytes: 0, usedBytes: undefined, measuredClaims: 0, freeBytes: undefined }
      totals.set(name, total)
    }
    return total
  }
  for (const { claim, usage } of claims) {
    const total = totalOf(claim.className ?? '')
    total.claims++
    total.promisedBytes += claim.capacityBytes ?? claim.requestBytes ?? 0
    if (usage?.usedBytes === undefined) continue
    total.measuredClaims++
    total.usedBytes = (total.usedBytes ?? 0) + usage.usedBytes
  }
  for (const { className, freeBytes } of capacities) {
    const total = totalOf(className)
    if (freeBytes !== undefined) total.freeBytes = (total.freeBytes ?? 0) + freeBytes
  }
  return [...totals.values()].sort((a, b) => b.promisedBytes - a.promisedBytes)
}
