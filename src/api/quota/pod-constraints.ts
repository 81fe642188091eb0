// A quota on cpu or memory makes every container of a new pod say how much it wants: clients know it so.

import type { Pod } from '../kinds/pod/pod-schema.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { parseQuantity } from '../quantity.ts'
import { keysOfResources } from './pod-usage.ts'
import { isInScope } from './scopes.ts'
import { type CountedKind, isSameKind, PODS } from './usage.ts'

const DEMANDED_KEYS = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']

/** What a new object leaves open, in words: `must specify limits.cpu for: a,b; limits.memory for: b`. */
export function missingConstraints(quota: Readonly<ResourceQuota>, kind: CountedKind, object: any): string | undefined {
  if (!isSameKind(kind, PODS)) return undefined
  const keys = Object.keys(quota.spec?.hard ?? {}).filter((key) => DEMANDED_KEYS.includes(key))
  if (keys.length === 0 || !isInScope(quota.spec, kind, object)) return undefined
  const { spec } = object as Pod
  if (!spec || spec.resources) return undefined // the pod as a whole has said it
  const containers = [...spec.containers, ...(spec.initContainers ?? [])].map(({ name, resources }) => {
    const said = keysOfResources(amounts(resources?.requests), amounts(resources?.limits))
    return { name, said: new Set(said.map(([key]) => key)) }
  })
  const missing = keys.sort().flatMap((key) => {
    const silent = new Set(containers.filter(({ said }) => !said.has(key)).map(({ name }) => name))
    return silent.size > 0 ? [`${key} for: ${[...silent].sort().join(',')}`] : []
  })
  return missing.length > 0 ? `must specify ${missing.join('; ')}` : undefined
}

const amounts = (list: Readonly<Record<string, string>> = {}) =>
  new Map(Object.entries(list).map(([name, amount]) => [name, parseQuantity(amount)]))
