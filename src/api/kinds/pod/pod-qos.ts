// Computes the QoS class of a pod, which determines the order of eviction when its node runs out of resources.
import { addQuantities, canonicalQuantity, compareQuantities, quantitySign } from '../../quantity.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import type { PodSpec, PodStatus } from './pod-schema.ts'

const RESOURCES = ['cpu', 'memory'] as const

/**
 * Returns Guaranteed if all containers have limits for cpu and memory and the sums of limits and requests are equal,
 * BestEffort if no container has requests or limits for them, and Burstable otherwise. Resources of the pod replace those of
 * its containers.
 */
export function qosClassOf(spec: PodSpec): NonNullable<PodStatus['qosClass']> {
  const owners = spec.resources ? [spec] : [...spec.containers, ...(spec.initContainers ?? [])]
  const requests = new Map<string, string>()
  const limits = new Map<string, string>()
  let hasAllLimits = true
  for (const { resources } of owners) {
    for (const name of RESOURCES) {
      addAmount(requests, name, amountOf(resources?.requests, name))
      if (!addAmount(limits, name, amountOf(resources?.limits, name))) hasAllLimits = false
    }
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  const areEqual = RESOURCES.every((name) => {
    const request = requests.get(name)
    const limit = limits.get(name)
    return request !== undefined && limit !== undefined && compareQuantities(request, limit) === 0
  })
  return hasAllLimits && areEqual ? 'Guaranteed' : 'Burstable'
}

function addAmount(sums: Map<string, string>, name: string, amount: string | undefined): boolean {
  if (amount === undefined || quantitySign(amount) <= 0) return false
  sums.set(name, canonicalQuantity(addQuantities(sums.get(name) ?? '0', amount)))
  return true
}
