// Computes the usage of a pod by quota key. A pod in phase Succeeded or Failed has no usage and is not counted in `pods`;
// `count/pods` counts it as long as it is stored.

import type { Pod } from '../kinds/pod/pod-schema.ts'
import { isHugePages } from '../kinds/shared/resource-names.ts'
import { parseQuantity, type Quantity } from '../quantity.ts'
import { podResources } from './pod-resources.ts'

const COMPUTE_RESOURCES = ['cpu', 'memory', 'ephemeral-storage']

export function podAmounts(pod: Pod): [string, Quantity][] {
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed' || !pod.spec) return []
  const requests = podResources(pod.spec, 'requests', { includesOverhead: true })
  const limits = podResources(pod.spec, 'limits', { includesOverhead: true })
  return [['pods', parseQuantity('1')], ...amountsByQuotaKey(requests, limits)]
}

/**
 * Returns the amounts by quota key. A key without a prefix is the request. Limits of huge pages and extended resources have no
 * key.
 */
export function amountsByQuotaKey(
  requests: ReadonlyMap<string, Quantity>,
  limits: ReadonlyMap<string, Quantity>,
): [string, Quantity][] {
  const amounts: [string, Quantity][] = []
  for (const [name, amount] of requests) {
    if (COMPUTE_RESOURCES.includes(name) || isHugePages(name)) amounts.push([name, amount])
    if (COMPUTE_RESOURCES.includes(name) || isHugePages(name) || name.includes('/'))
      amounts.push([`requests.${name}`, amount])
  }
  for (const [name, amount] of limits) if (COMPUTE_RESOURCES.includes(name)) amounts.push([`limits.${name}`, amount])
  return amounts
}

/** Returns whether pods are charged to this key. */
export function isPodKey(key: string): boolean {
  if (key === 'pods') return true
  const name = key.replace(/^(requests|limits)\./, '')
  if (COMPUTE_RESOURCES.includes(name)) return true
  if (key.startsWith('limits.')) return false
  return isHugePages(name) || (key.startsWith('requests.') && name.includes('/'))
}
