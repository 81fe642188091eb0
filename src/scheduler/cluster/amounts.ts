// Resource requests of pods and allocatable resources of nodes as plain numbers: cpu in millicores, everything else in
// whole units. Amounts are rounded up.

import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { parseQuantity } from '../../api/quantity.ts'

export type Amounts = ReadonlyMap<string, number>

const NONE: Amounts = new Map()

/** The pod's peak: the sum of its containers, or the init container that requests most, if that is more. */
export function requestsOf({ spec }: Readonly<Pod>): Amounts {
  const running = new Map<string, number>()
  for (const { resources } of spec?.containers ?? []) addTo(running, resources?.requests)
  const starting = new Map<string, number>()
  const sidecars = new Map<string, number>()
  for (const { resources, restartPolicy } of spec?.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      addTo(sidecars, resources?.requests)
      addTo(running, resources?.requests)
      raiseTo(starting, sidecars)
    } else {
      const moment = new Map(sidecars)
      addTo(moment, resources?.requests)
      raiseTo(starting, moment)
    }
  }
  raiseTo(running, starting)
  // Requests of the pod as a whole replace those of its containers.
  for (const [name, amount] of Object.entries(spec?.resources?.requests ?? {})) running.set(name, unitsOf(name, amount))
  addTo(running, spec?.overhead)
  return running
}

/** Undefined if the node reports none: its resources are then not limited. */
export function allocatableOf({ status }: Readonly<Node>): Amounts | undefined {
  const stated = status?.allocatable ?? status?.capacity
  if (!stated) return undefined
  return Object.keys(stated).length === 0
    ? NONE
    : new Map(Object.entries(stated).map(([name, amount]) => [name, unitsOf(name, amount)]))
}

export function addAmounts(total: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) total.set(name, (total.get(name) ?? 0) + amount)
}

function addTo(total: Map<string, number>, given: Readonly<Record<string, string>> | undefined): void {
  for (const [name, amount] of Object.entries(given ?? {})) {
    total.set(name, (total.get(name) ?? 0) + unitsOf(name, amount))
  }
}

function raiseTo(total: Map<string, number>, atLeast: Amounts): void {
  for (const [name, amount] of atLeast) total.set(name, Math.max(total.get(name) ?? 0, amount))
}

const NANOS_PER_MILLI = 1_000_000n
const NANOS_PER_UNIT = 1_000_000_000n

function unitsOf(name: string, amount: string): number {
  const per = name === 'cpu' ? NANOS_PER_MILLI : NANOS_PER_UNIT
  const { nanos } = parseQuantity(amount)
  const whole = nanos / per
  return Number(whole * per < nanos ? whole + 1n : whole)
}
