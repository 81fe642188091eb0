// Describes which containers of a new pod lack the requests or limits that a quota on cpu or memory requires, as in
// Kubernetes.
import type { KubeObject } from '../kind.ts'
import type { Pod } from '../kinds/pod/pod-schema.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { parseQuantity } from '../quantity.ts'
import { amountsByQuotaKey } from './pod-usage.ts'
import { isInScope } from './scopes.ts'
import { type GroupResource, isSameKind, PODS } from './usage.ts'

const REQUIRED_KEYS = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']

/** Returns a message such as `must specify limits.cpu for: a,b; limits.memory for: b`, or undefined if none is missing. */
export function describeMissingConstraints(
  quota: Readonly<ResourceQuota>,
  kind: GroupResource,
  object: KubeObject,
): string | undefined {
  if (!isSameKind(kind, PODS)) return undefined
  const keys = Object.keys(quota.spec?.hard ?? {}).filter((key) => REQUIRED_KEYS.includes(key))
  if (keys.length === 0 || !isInScope(quota.spec, kind, object)) return undefined
  const { spec } = object as Pod
  if (!spec || spec.resources) return undefined // pod-level resources replace those of the containers
  const containers = [...spec.containers, ...(spec.initContainers ?? [])].map(({ name, resources }) => {
    const amounts = amountsByQuotaKey(parseAmounts(resources?.requests), parseAmounts(resources?.limits))
    return { name, specifiedKeys: new Set(amounts.map(([key]) => key)) }
  })
  const messages = keys.sort().flatMap((key) => {
    const containerNames = new Set(
      containers.filter(({ specifiedKeys }) => !specifiedKeys.has(key)).map(({ name }) => name),
    )
    return containerNames.size > 0 ? [`${key} for: ${[...containerNames].sort().join(',')}`] : []
  })
  return messages.length > 0 ? `must specify ${messages.join('; ')}` : undefined
}

const parseAmounts = (list: Readonly<Record<string, string>> = {}) =>
  new Map(Object.entries(list).map(([name, amount]) => [name, parseQuantity(amount)]))
