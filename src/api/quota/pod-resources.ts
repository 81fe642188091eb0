// The requests or limits of a pod as a whole: containers run together; init containers run one after another before them,
// except sidecars, which keep running and add to everything after them.
//   containers 1 + 2, sidecar 1, then init 5     max(1 + 2 + 1, 1, 1 + 5) = 6

import type { PodSpec } from '../kinds/pod/pod-schema.ts'
import { addQuantities, compareQuantities, parseQuantity, type Quantity } from '../quantity.ts'

type Part = 'requests' | 'limits'
type Amounts = Map<string, Quantity>

export function podResources(spec: PodSpec, part: Part, { withOverhead }: { withOverhead: boolean }): Amounts {
  const together: Amounts = new Map()
  for (const { resources } of spec.containers) addAll(together, resources?.[part])
  const sidecars: Amounts = new Map()
  const peak: Amounts = new Map()
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      addAll(together, resources?.[part])
      addAll(sidecars, resources?.[part])
      raiseAll(peak, sidecars)
    } else {
      const now: Amounts = new Map(sidecars)
      addAll(now, resources?.[part])
      raiseAll(peak, now)
    }
  }
  raiseAll(together, peak)
  // Pod-level resources override those of the containers.
  for (const [name, amount] of Object.entries(spec.resources?.[part] ?? {})) together.set(name, parseQuantity(amount))
  if (withOverhead) addOverhead(together, spec, part)
  return together
}

/** Overhead does not create a limit where none is set. */
function addOverhead(amounts: Amounts, { overhead = {} }: PodSpec, part: Part): void {
  for (const [name, amount] of Object.entries(overhead)) {
    const before = amounts.get(name)
    if (part === 'requests' || before) amounts.set(name, addQuantities(before ?? '0', amount))
  }
}

function addAll(amounts: Amounts, more: Readonly<Record<string, string>> | undefined): void {
  for (const [name, amount] of Object.entries(more ?? {})) {
    const before = amounts.get(name)
    amounts.set(name, before ? addQuantities(before, amount) : parseQuantity(amount))
  }
}

function raiseAll(amounts: Amounts, atLeast: Amounts): void {
  for (const [name, amount] of atLeast) {
    const before = amounts.get(name)
    if (!before || compareQuantities(amount, before) > 0) amounts.set(name, amount)
  }
}
