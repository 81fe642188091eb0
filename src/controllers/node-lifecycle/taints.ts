// Which taints follow from a node's conditions, and how long pods tolerate them. Pure.
//   Ready=False    not-ready     NoSchedule and NoExecute
//   Ready=Unknown  unreachable   NoSchedule and NoExecute
//   a pressure     its own key   NoSchedule
// Taints with other keys are left alone.
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import type { Toleration } from '../../api/kinds/pod/pod-schema.ts'
import { tolerates } from '../../volumes/tolerations.ts'

export const NOT_READY = 'node.kubernetes.io/not-ready'
export const UNREACHABLE = 'node.kubernetes.io/unreachable'
export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'

const TAINTS_OF_CONDITIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Ready: { False: NOT_READY, Unknown: UNREACHABLE },
  MemoryPressure: { True: 'node.kubernetes.io/memory-pressure' },
  DiskPressure: { True: 'node.kubernetes.io/disk-pressure' },
  PIDPressure: { True: 'node.kubernetes.io/pid-pressure' },
}
const OWN_KEYS = new Set(Object.values(TAINTS_OF_CONDITIONS).flatMap((keys) => Object.values(keys)))
const EVICTING_KEYS: readonly string[] = [NOT_READY, UNREACHABLE]
/** How long pods without a matching toleration stay on a node that is not ready or unreachable. */
const DEFAULT_TOLERATION_SECONDS = 300

/** The taints the node should have; undefined if it has them. Existing taints keep their timeAdded. */
export function taintsDue(node: Readonly<Node>, now: string): Taint[] | undefined {
  const existing = node.spec?.taints ?? []
  const due = ownTaints(node)
  const isDue = (taint: Taint) => due.some((one) => isSame(one, taint))
  const kept = existing.filter((taint) => !isOwn(taint) || isDue(taint))
  const added = due.filter((one) => !existing.some((taint) => isSame(one, taint)))
  if (kept.length === existing.length && added.length === 0) return undefined
  return [...kept, ...added.map((taint) => ({ ...taint, timeAdded: now }))]
}

function ownTaints({ status }: Readonly<Node>): Taint[] {
  const keys = (status?.conditions ?? []).flatMap(({ type, status: is }) => TAINTS_OF_CONDITIONS[type]?.[is] ?? [])
  return keys.flatMap((key): Taint[] => [
    { key, effect: 'NoSchedule' },
    ...(EVICTING_KEYS.includes(key) ? [{ key, effect: 'NoExecute' } as const] : []),
  ])
}

const isSame = (one: Taint, other: Taint): boolean => one.key === other.key && one.effect === other.effect

const isOwn = ({ key, effect }: Taint): boolean =>
  OWN_KEYS.has(key) && (effect === 'NoSchedule' || (effect === 'NoExecute' && EVICTING_KEYS.includes(key)))

/** Tainted as not ready or unreachable. */
export const isLost = (taints: readonly Taint[] | undefined): boolean =>
  taints?.some(({ key, effect }) => effect === 'NoExecute' && EVICTING_KEYS.includes(key)) ?? false

export const isOutOfService = ({ spec }: Readonly<Node>): boolean =>
  spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false

export const evictingTaints = (node: Readonly<Node> | undefined): readonly Taint[] =>
  node?.spec?.taints?.filter(({ effect }) => effect === 'NoExecute') ?? []

/** How long a pod tolerates all these taints: 0 if it does not tolerate one of them, Infinity if it always does. */
export function toleratedMs(taints: readonly Taint[], tolerations: readonly Toleration[] = []): number {
  const all = [...tolerations, ...impliedTolerations(tolerations)]
  const each = taints.map((taint) => {
    const used = all.find((toleration) => tolerates(toleration, taint))
    if (!used) return 0
    return used.tolerationSeconds === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, Number(used.tolerationSeconds)) * 1_000
  })
  return Math.min(Number.POSITIVE_INFINITY, ...each)
}

/** The tolerations that Kubernetes' admission adds to every pod, unless the pod has its own. */
const impliedTolerations = (tolerations: readonly Toleration[]): Toleration[] =>
  EVICTING_KEYS.filter((key) => !tolerations.some((one) => isAbout(one, key))).map((key) => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: DEFAULT_TOLERATION_SECONDS,
  }))

const isAbout = (toleration: Toleration, key: string): boolean =>
  (!toleration.key || toleration.key === key) && (!toleration.effect || toleration.effect === 'NoExecute')
