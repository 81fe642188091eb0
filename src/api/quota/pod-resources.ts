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
  { withOverhead }: { withOverhead: boolean },
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
      const concurrent: Amounts = new Map(sidecars)
      addAmounts(concurrent, resources?.[field])
      raiseAmounts(initPeak, concurrent)
    }
  }
  raiseAmounts(total, initPeak)
  // Pod-level resources override those of the containers.
  for (const [name, amount] of Object.entries(spec.resources?.[field] ?? {})) total.set(name, parseQuantity(amount))
  if (withOverhead) addOverhead(total, spec, field)
  return total
}

/** Adds the overhead of the pod to all requests, but only to limits that are set. */
function addOverhead(amounts: Amounts, { overhead = {} }: PodSpec, field: ResourcesField): void {
  for (const [name, amount] of Object.entries(overhead)) {
    const current = amounts.get(name)
    if (field === 'requests' || current) amounts.set(name, addQuantities(current ?? '0', amount))
  }
}

function addAmounts(amounts: Amounts, added: Readonly<Record<string, string>> | undefined): void {
  for (const [name, amount] of Object.entries(added ?? {})) {
    const current = amounts.get(name)
    amounts.set(name, current ? addQuantities(current, amount) : parseQuantity(amount))
  }
}

function raiseAmounts(amounts: Amounts, minimum: Amounts): void {
  for (const [name, amount] of minimum) {
    const current = amounts.get(name)
    if (!current || compareQuantities(amount, current) > 0) amounts.set(name, amount)
  }
}
