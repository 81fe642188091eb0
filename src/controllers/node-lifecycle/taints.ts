// Which taints a node's conditions put on it, and who bears them how long. Pure.
//   Ready=False    not-ready     NoSchedule and NoExecute
//   Ready=Unknown  unreachable   NoSchedule and NoExecute
//   a pressure     its own key   NoSchedule
// Taints of other keys are other people's and stay as they are.
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
/** Pods that say nothing about a node that is lost or not ready bear it this long. */
const DEFAULT_BORNE_SECONDS = 300

/** The taints the node should have; undefined when it has just these. Those that stay keep the time they came. */
export function taintsDue(node: Readonly<Node>, now: string): Taint[] | undefined {
  const there = node.spec?.taints ?? []
  const due = ownTaints(node)
  const isDue = (taint: Taint) => due.some((one) => isSame(one, taint))
  const stay = there.filter((taint) => !isOwn(taint) || isDue(taint))
  const come = due.filter((one) => !there.some((taint) => isSame(one, taint)))
  if (stay.length === there.length && come.length === 0) return undefined
  return [...stay, ...come.map((taint) => ({ ...taint, timeAdded: now }))]
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

/** Tainted as one that does not answer or is not ready. */
export const isLost = (taints: readonly Taint[] | undefined): boolean =>
  taints?.some(({ key, effect }) => effect === 'NoExecute' && EVICTING_KEYS.includes(key)) ?? false

export const isOutOfService = ({ spec }: Readonly<Node>): boolean =>
  spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false

export const evictingTaints = (node: Readonly<Node> | undefined): readonly Taint[] =>
  node?.spec?.taints?.filter(({ effect }) => effect === 'NoExecute') ?? []

/** How long a pod bears these taints together: 0 when it does not bear one of them, Infinity when it always does. */
export function borneMs(taints: readonly Taint[], tolerations: readonly Toleration[] = []): number {
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

/** What other clusters write into every pod at its creation is understood here; a pod's own words come before it. */
const impliedTolerations = (tolerations: readonly Toleration[]): Toleration[] =>
  EVICTING_KEYS.filter((key) => !tolerations.some((one) => isAbout(one, key))).map((key) => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: DEFAULT_BORNE_SECONDS,
  }))

const isAbout = (toleration: Toleration, key: string): boolean =>
  (!toleration.key || toleration.key === key) && (!toleration.effect || toleration.effect === 'NoExecute')
