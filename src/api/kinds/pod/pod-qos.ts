// The QoS class of a pod, which determines the order of eviction when its node runs out of resources.
import { addQuantities, canonicalQuantity, compareQuantities, quantitySign } from '../../quantity.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import type { PodSpec, PodStatus } from './pod-schema.ts'

const RESOURCES = ['cpu', 'memory'] as const

/**
 * Guaranteed: every container has limits for cpu and memory that equal its requests.
 * BestEffort: no container has requests or limits. Burstable: all others.
 */
export function qosClassOf(spec: PodSpec): NonNullable<PodStatus['qosClass']> {
  const parts = spec.resources ? [spec] : [...spec.containers, ...(spec.initContainers ?? [])]
  const requests = new Map<string, string>()
  const limits = new Map<string, string>()
  let allLimited = true
  for (const { resources } of parts) {
    for (const name of RESOURCES) {
      add(requests, name, amountOf(resources?.requests, name))
      if (!add(limits, name, amountOf(resources?.limits, name))) allLimited = false
    }
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  const equal = RESOURCES.every((name) => {
    const request = requests.get(name)
    const limit = limits.get(name)
    return request !== undefined && limit !== undefined && compareQuantities(request, limit) === 0
  })
  return allLimited && equal ? 'Guaranteed' : 'Burstable'
}

function add(sums: Map<string, string>, name: string, amount: string | undefined): boolean {
  if (amount === undefined || quantitySign(amount) <= 0) return false
  sums.set(name, canonicalQuantity(addQuantities(sums.get(name) ?? '0', amount)))
  return true
}
