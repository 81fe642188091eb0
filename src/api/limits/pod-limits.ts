// Applies LimitRange items to pods. Container items have defaults and bounds for each container; Pod items have bounds for
// the total of the pod.
import { limitsClaims } from '../kinds/limit-range/limit-range.ts'
import type { LimitRange, LimitRangeItem } from '../kinds/limit-range/limit-range-schema.ts'
import type { Container } from '../kinds/pod/container-schema.ts'
import type { Pod } from '../kinds/pod/pod-schema.ts'
import { parseQuantity, type Quantity } from '../quantity.ts'
import { podResources } from '../quota/index.ts'
import { describeMaxViolation, describeMinViolation, describeRatioViolation } from './bounds.ts'

/** The annotation that lists the defaults that were set on the pod, as in Kubernetes. */
const LIMIT_RANGER_ANNOTATION = 'kubernetes.io/limit-ranger'

/** Sets the default requests and limits of a new pod's containers. */
export function applyPodDefaults(pod: Pod, range: Readonly<LimitRange>): void {
  const [item] = containerItems(range)
  if (!item || !pod.spec) return
  const messages: string[] = []
  const withDefaults = <C extends { name: string; resources?: Container['resources'] }>(
    container: C,
    type: string,
  ): C => {
    const limits = { ...item.default, ...container.resources?.limits }
    const requests = { ...item.defaultRequest, ...container.resources?.requests }
    recordDefaults('request', requests, container.resources?.requests)
    recordDefaults('limit', limits, container.resources?.limits)
    return { ...container, resources: { ...container.resources, ...omitEmpty({ limits, requests }) } }

    function recordDefaults(resourceField: string, defaultedAmounts: object, originalAmounts: object = {}): void {
      const names = Object.keys(defaultedAmounts).filter((name) => !Object.hasOwn(originalAmounts, name))
      if (names.length > 0) messages.push(`${names.sort().join(', ')} ${resourceField} for ${type} ${container.name}`)
    }
  }
  const containers = pod.spec.containers.map((container) => withDefaults(container, 'container'))
  const initContainers = pod.spec.initContainers?.map((container) => withDefaults(container, 'init container'))
  if (messages.length === 0) return
  pod.spec = { ...pod.spec, containers, ...(initContainers ? { initContainers } : {}) }
  const annotations = {
    ...pod.metadata.annotations,
    [LIMIT_RANGER_ANNOTATION]: `LimitRanger plugin set: ${messages.join('; ')}`,
  }
  pod.metadata = { ...pod.metadata, annotations }
}

/** Returns one message per violation of a range by a pod. */
export function findPodViolations({ spec }: Pod, range: Readonly<LimitRange>): string[] {
  if (!spec) return []
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  const containerViolations = containerItems(range).flatMap((item) =>
    containers.flatMap(({ resources }) =>
      findItemViolations('Container', item, parseAmounts(resources?.requests), parseAmounts(resources?.limits)),
    ),
  )
  const podTotals = (resourceField: 'requests' | 'limits') =>
    podResources(spec, resourceField, { includesOverhead: false })
  const podItemViolations = (range.spec?.limits ?? [])
    .filter(({ type }) => type === 'Pod')
    .flatMap((item) => findItemViolations('Pod', item, podTotals('requests'), podTotals('limits')))
  return [...new Set([...containerViolations, ...podItemViolations])]
}

type Amounts = ReadonlyMap<string, Quantity>

function findItemViolations(type: string, item: LimitRangeItem, requests: Amounts, limits: Amounts): string[] {
  const resourceOf = (name: string) => ({ type, name, request: requests.get(name), limit: limits.get(name) })
  return [
    ...sortedEntries(item.min).map(([name, min]) => describeMinViolation(resourceOf(name), min)),
    ...sortedEntries(item.max).map(([name, max]) => describeMaxViolation(resourceOf(name), max)),
    ...sortedEntries(item.maxLimitRequestRatio).map(([name, ratio]) => describeRatioViolation(resourceOf(name), ratio)),
  ].filter((violation) => violation !== undefined)
}

const containerItems = (range: Readonly<LimitRange>): readonly LimitRangeItem[] =>
  range.spec?.limits.filter((item) => item.type === 'Container' && !limitsClaims(item)) ?? []

const parseAmounts = (list: Readonly<Record<string, string>> = {}): Amounts =>
  new Map(Object.entries(list).map(([name, amount]) => [name, parseQuantity(amount)]))

const sortedEntries = (list: Record<string, string> = {}): [string, string][] =>
  Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1))

const omitEmpty = (lists: Record<string, object>) =>
  Object.fromEntries(Object.entries(lists).filter(([, list]) => Object.keys(list).length > 0))
