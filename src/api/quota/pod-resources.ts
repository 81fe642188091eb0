// Computes the total requests or limits of a pod. Containers run at the same time. Init containers run before them, one
// after another, except sidecars, which continue to run.
//   containers 1 + 2, sidecar 1, then init 5     max(1 + 2 + 1, 1, 1 + 5) = 6

import type { PodSpec } from '../kinds/pod/pod-schema.ts'
import { addQuantities, compareQuantities, parseQuantity, type Quantity } from '../quantity.ts'

type ResourcesField = 'requests' | 'limits'
type Amounts = Map<string, Quantity>

export function podResources(
  spec: PodSpec,
  field: ResourcesField,
  { includesOverhead }: { includesOverhead: boolean },
): Amounts {
  const total: Amounts = new Map()
  for (const { resources } of spec.containers) addAmounts(total, resources?.[field])
  const sidecars: Amounts = new Map()
  const initPeak: Amounts = new Map()
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      addAmounts(total, resources?.[field])
      addAmounts(sidecars, resources?.[field])
      raiseAmounts(initPeak, sidecars)
    } else {
      const concurrentAmounts: Amounts = new Map(sidecars)
      addAmounts(concurrentAmounts, resources?.[field])
      raiseAmounts(initPeak, concurrentAmounts)
    }
  }
  raiseAmounts(total, initPeak)
  // Pod-level resources override those of the containers.
  for (const [name, amount] of Object.entries(spec.resources?.[field] ?? {})) total.set(name, parseQuantity(amount))
  if (includesOverhead) addOverhead(total, spec, field)
  return total
}

/** Adds the overhead of the pod to all requests, but only to limits that are set. */
function addOverhead(amounts: Amounts, { overhead = {} }: PodSpec, field: ResourcesField): void {
  for (const [name, amount] of Object.entries(overhead)) {
    const currentAmount = amounts.get(name)
    if (field === 'requests' || currentAmount) amounts.set(name, addQuantities(currentAmount ?? '0', amount))
  }
}

function addAmounts(amounts: Amounts, addedAmounts: Readonly<Record<string, string>> | undefined): void {
  for (const [name, amount] of Object.entries(addedAmounts ?? {})) {
    const currentAmount = amounts.get(name)
    amounts.set(name, currentAmount ? addQuantities(currentAmount, amount) : parseQuantity(amount))
  }
}

function raiseAmounts(amounts: Amounts, minimum: Amounts): void {
  for (const [name, amount] of minimum) {
    const currentAmount = amounts.get(name)
    if (!currentAmount || compareQuantities(amount, currentAmount) > 0) amounts.set(name, amount)
  }
}
