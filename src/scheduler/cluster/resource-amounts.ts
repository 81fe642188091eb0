// Converts the resource requests of pods and the allocatable resources of nodes to numbers: cpu in millicores, all other
// resources in whole units, rounded up.

import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { parseQuantity } from '../../api/quantity.ts'

export type ResourceAmounts = ReadonlyMap<string, number>

/**
 * Returns the pod's requests. Per resource, this is the sum over the containers, or the peak while the init containers
 * run if that is higher. A pod-level request replaces either. The overhead is added.
 */
export function requestsOf({ spec }: Readonly<Pod>): ResourceAmounts {
  const total = new Map<string, number>()
  for (const { resources } of spec?.containers ?? []) addRequests(total, resources?.requests)
  const initPeak = new Map<string, number>()
  const sidecars = new Map<string, number>()
  for (const { resources, restartPolicy } of spec?.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      addRequests(sidecars, resources?.requests)
      addRequests(total, resources?.requests)
      raiseToAtLeast(initPeak, sidecars)
    } else {
      const initRequests = new Map(sidecars)
      addRequests(initRequests, resources?.requests)
      raiseToAtLeast(initPeak, initRequests)
    }
  }
  raiseToAtLeast(total, initPeak)
  for (const [name, amount] of Object.entries(spec?.resources?.requests ?? {}))
    total.set(name, countUnits(name, amount))
  addRequests(total, spec?.overhead)
  return total
}

/** Returns undefined if the node reports no resources: its resources are then not limited. */
export function allocatableOf({ status }: Readonly<Node>): ResourceAmounts | undefined {
  const resources = status?.allocatable ?? status?.capacity
  return resources && new Map(Object.entries(resources).map(([name, amount]) => [name, countUnits(name, amount)]))
}

export function addAmounts(total: Map<string, number>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) total.set(name, (total.get(name) ?? 0) + amount)
}

export function hasSameAmounts(a: ResourceAmounts, b: ResourceAmounts): boolean {
  if (a.size !== b.size) return false
  for (const [name, amount] of a) if (b.get(name) !== amount) return false
  return true
}

function addRequests(total: Map<string, number>, requests: Readonly<Record<string, string>> | undefined): void {
  for (const [name, amount] of Object.entries(requests ?? {})) {
    total.set(name, (total.get(name) ?? 0) + countUnits(name, amount))
  }
}

function raiseToAtLeast(total: Map<string, number>, minimum: ResourceAmounts): void {
  for (const [name, amount] of minimum) total.set(name, Math.max(total.get(name) ?? 0, amount))
}

const NANOS_PER_MILLI = 1_000_000n
const NANOS_PER_UNIT = 1_000_000_000n

function countUnits(name: string, amount: string): number {
  const nanosPerUnit = name === 'cpu' ? NANOS_PER_MILLI : NANOS_PER_UNIT
  const { nanos } = parseQuantity(amount)
  const units = nanos / nanosPerUnit
  return Number(units * nanosPerUnit < nanos ? units + 1n : units)
}
