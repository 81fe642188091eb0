// Computes the taints of a node from its conditions, and how long pods tolerate them. Pure.
//   Ready=False    not-ready     NoSchedule and NoExecute
//   Ready=Unknown  unreachable   NoSchedule and NoExecute
//   …Pressure=True its own key   NoSchedule
// Taints with other keys do not change.
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import type { Toleration } from '../../api/kinds/pod/pod-schema.ts'
import { tolerates } from '../../volumes/tolerations.ts'

const NOT_READY = 'node.kubernetes.io/not-ready'
const UNREACHABLE = 'node.kubernetes.io/unreachable'

const TAINTS_OF_CONDITIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Ready: { False: NOT_READY, Unknown: UNREACHABLE },
  MemoryPressure: { True: 'node.kubernetes.io/memory-pressure' },
  DiskPressure: { True: 'node.kubernetes.io/disk-pressure' },
  PIDPressure: { True: 'node.kubernetes.io/pid-pressure' },
}
const MANAGED_KEYS = new Set(Object.values(TAINTS_OF_CONDITIONS).flatMap((keys) => Object.values(keys)))
const EVICTING_KEYS: readonly string[] = [NOT_READY, UNREACHABLE]
/** How long pods without a matching toleration stay on a node that is not ready or unreachable. */
const DEFAULT_TOLERATION_SECONDS = 300

/** Returns the taints that the node should have, or undefined if it has them. Existing taints keep their timeAdded. */
export function desiredTaints(node: Readonly<Node>, now: string): Taint[] | undefined {
  const existingTaints = node.spec?.taints ?? []
  const taints = taintsOfConditions(node)
  const isDesired = (taint: Taint) => taints.some((candidate) => isSameTaint(candidate, taint))
  const keptTaints = existingTaints.filter((taint) => !isManaged(taint) || isDesired(taint))
  const newTaints = taints.filter((taint) => !existingTaints.some((existingTaint) => isSameTaint(existingTaint, taint)))
  if (keptTaints.length === existingTaints.length && newTaints.length === 0) return undefined
  return [...keptTaints, ...newTaints.map((taint) => ({ ...taint, timeAdded: now }))]
}

function taintsOfConditions({ status }: Readonly<Node>): Taint[] {
  const conditions = status?.conditions ?? []
  const keys = conditions.flatMap(({ type, status: value }) => TAINTS_OF_CONDITIONS[type]?.[value] ?? [])
  return keys.flatMap((key): Taint[] => [
    { key, effect: 'NoSchedule' },
    ...(EVICTING_KEYS.includes(key) ? [{ key, effect: 'NoExecute' } as const] : []),
  ])
}

const isSameTaint = (taint: Taint, other: Taint): boolean => taint.key === other.key && taint.effect === other.effect

const isManaged = ({ key, effect }: Taint): boolean =>
  MANAGED_KEYS.has(key) && (effect === 'NoSchedule' || (effect === 'NoExecute' && EVICTING_KEYS.includes(key)))

/** Whether the node is tainted as not ready or unreachable. */
export const hasNotReadyTaint = (taints: readonly Taint[] | undefined): boolean =>
  taints?.some(({ key, effect }) => effect === 'NoExecute' && EVICTING_KEYS.includes(key)) ?? false

export const evictingTaints = (node: Readonly<Node> | undefined): readonly Taint[] =>
  node?.spec?.taints?.filter(({ effect }) => effect === 'NoExecute') ?? []

/**
 * Returns the time for which a pod tolerates all these taints: 0 if the pod does not tolerate one of them, Infinity if it
 * always does.
 */
export function tolerationMs(taints: readonly Taint[], tolerations: readonly Toleration[] = []): number {
  const allTolerations = [...tolerations, ...impliedTolerations(tolerations)]
  const toleratedTimes = taints.map((taint) => {
    const toleration = allTolerations.find((candidate) => tolerates(candidate, taint))
    if (!toleration) return 0
    return toleration.tolerationSeconds === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, Number(toleration.tolerationSeconds)) * 1_000
  })
  return Math.min(Number.POSITIVE_INFINITY, ...toleratedTimes)
}

/** Returns the tolerations that Kubernetes' admission adds to every pod, unless the pod has its own. */
const impliedTolerations = (tolerations: readonly Toleration[]): Toleration[] =>
  EVICTING_KEYS.filter((key) => !tolerations.some((toleration) => appliesTo(toleration, key))).map((key) => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: DEFAULT_TOLERATION_SECONDS,
  }))

const appliesTo = (toleration: Toleration, key: string): boolean =>
  (!toleration.key || toleration.key === key) && (!toleration.effect || toleration.effect === 'NoExecute')
