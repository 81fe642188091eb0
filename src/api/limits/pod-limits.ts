// Applies LimitRange items to pods: Container items set defaults and bounds of each container, Pod items bound the pod.
import { limitsClaims } from '../kinds/limit-range/limit-range.ts'
import type { LimitRange, LimitRangeItem } from '../kinds/limit-range/limit-range-schema.ts'
import type { Container } from '../kinds/pod/container-schema.ts'
import type { Pod } from '../kinds/pod/pod-schema.ts'
import { parseQuantity, type Quantity } from '../quantity.ts'
import { podResources } from '../quota/index.ts'
import { aboveMax, belowMin, ratioAboveMax } from './bounds.ts'

/** Lists the defaults that were set on the pod, as in Kubernetes. */
const ANNOTATION = 'kubernetes.io/limit-ranger'

/** Sets the default requests and limits of the containers of a new pod. */
export function applyPodDefaults(pod: Pod, range: Readonly<LimitRange>): void {
  const [item] = containerItems(range)
  if (!item || !pod.spec) return
  const notes: string[] = []
  const filled = <C extends { name: string; resources?: Container['resources'] }>(container: C, type: string): C => {
    const limits = { ...item.default, ...container.resources?.limits }
    const requests = { ...item.defaultRequest, ...container.resources?.requests }
    note('request', requests, container.resources?.requests)
    note('limit', limits, container.resources?.limits)
    return { ...container, resources: { ...container.resources, ...nonEmpty({ limits, requests }) } }

    function note(part: string, now: object, before: object = {}): void {
      const added = Object.keys(now).filter((name) => !Object.hasOwn(before, name))
      if (added.length > 0) notes.push(`${added.sort().join(', ')} ${part} for ${type} ${container.name}`)
    }
  }
  const containers = pod.spec.containers.map((container) => filled(container, 'container'))
  const initContainers = pod.spec.initContainers?.map((container) => filled(container, 'init container'))
  if (notes.length === 0) return
  pod.spec = { ...pod.spec, containers, ...(initContainers ? { initContainers } : {}) }
  const annotations = { ...pod.metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${notes.join('; ')}` }
  pod.metadata = { ...pod.metadata, annotations }
}

/** The violations of a range by a pod, one message each. */
export function podViolations({ spec }: Pod, range: Readonly<LimitRange>): string[] {
  if (!spec) return []
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  const ofContainers = containerItems(range).flatMap((item) =>
    containers.flatMap(({ resources }) =>
      violations('Container', item, amounts(resources?.requests), amounts(resources?.limits)),
    ),
  )
  const whole = (part: 'requests' | 'limits') => podResources(spec, part, { withOverhead: false })
  const ofPod = (range.spec?.limits ?? [])
    .filter(({ type }) => type === 'Pod')
    .flatMap((item) => violations('Pod', item, whole('requests'), whole('limits')))
  return [...new Set([...ofContainers, ...ofPod])]
}

type Amounts = ReadonlyMap<string, Quantity>

function violations(type: string, item: LimitRangeItem, requests: Amounts, limits: Amounts): string[] {
  const bounded = (name: string) => ({ type, name, request: requests.get(name), limit: limits.get(name) })
  return [
    ...entries(item.min).map(([name, min]) => belowMin(bounded(name), min)),
    ...entries(item.max).map(([name, max]) => aboveMax(bounded(name), max)),
    ...entries(item.maxLimitRequestRatio).map(([name, ratio]) => ratioAboveMax(bounded(name), ratio)),
  ].filter((violation) => violation !== undefined)
}

const containerItems = (range: Readonly<LimitRange>): readonly LimitRangeItem[] =>
  range.spec?.limits.filter((item) => item.type === 'Container' && !limitsClaims(item)) ?? []

const amounts = (list: Readonly<Record<string, string>> = {}): Amounts =>
  new Map(Object.entries(list).map(([name, amount]) => [name, parseQuantity(amount)]))

const entries = (list: Record<string, string> = {}): [string, string][] =>
  Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1))

const nonEmpty = (lists: Record<string, object>) =>
  Object.fromEntries(Object.entries(lists).filter(([, list]) => Object.keys(list).length > 0))
