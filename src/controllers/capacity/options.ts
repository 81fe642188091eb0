// Options of the capacity producer. The defaults are those of external-provisioner, except that writes are not limited
// unless a limit is set.

import type { RateLimit } from '../../client/index.ts'
import type { Backoff } from '../../runtime/backoff.ts'

/** One producer for all nodes of the cluster, or one on each node for that node. */
export type CapacityMode =
  | { readonly is: 'central' }
  /** `segments`: the topology of the node. Absent: from NodeGetInfo. */
  | { readonly is: 'local'; readonly node: string; readonly segments?: Readonly<Record<string, string>> }

export interface CapacityOptions {
  /** The namespace of the objects; other namespaces are ignored. */
  readonly namespace: string
  /** Interval of GetCapacity per item without another cause. Default 1 min. */
  readonly pollIntervalMs?: number
  /** Items reconciled at once. Default 1. */
  readonly workers?: number
  /** Per call to the driver. Default 10 s. */
  readonly timeoutMs?: number
  /** Produce objects for classes with immediate binding too. Default false. */
  readonly immediateBinding?: boolean
  /** Backoff between tries for one item. Default 1 s, doubling up to 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** The pod of this process, and how many controllers above it own the objects. Absent: no owner. */
  readonly owner?: { readonly podName: string; readonly level: number }
  /** Limit of writes of capacity objects. Absent: none. */
  readonly writes?: RateLimit
  /** Changes of volumes are batched until a pause of this length, and for at most that long. Default 100 ms and 1 s. */
  readonly batchQuietMs?: number
  readonly batchMs?: number
  /** Several producers run in this process: the queue name contains the driver. Default false. */
  readonly isOneOfSeveral?: boolean
}

export interface CapacitySettings extends Required<Omit<CapacityOptions, 'owner' | 'writes'>> {
  readonly owner?: CapacityOptions['owner']
  readonly writes?: RateLimit
  readonly backoff: Backoff
}

const DEFAULTS = {
  pollIntervalMs: 60_000,
  workers: 1,
  timeoutMs: 10_000,
  immediateBinding: false,
  retryIntervalStartMs: 1_000,
  retryIntervalMaxMs: 300_000,
  batchQuietMs: 100,
  batchMs: 1_000,
  isOneOfSeveral: false,
} as const

export function settingsOf(options: CapacityOptions): CapacitySettings {
  const settings = { ...DEFAULTS, ...options }
  if (settings.namespace === '') {
    throw new Error(
      'Cannot publish capacity: no namespace is given for its objects. Set $NAMESPACE to that of the pod.',
    )
  }
  return { ...settings, backoff: { baseMs: settings.retryIntervalStartMs, maxMs: settings.retryIntervalMaxMs } }
}

/** Parses `--enable-capacity`; `true` follows the deployment. Undefined: no capacity is published. */
export function parseEnableCapacity(
  text: string,
  { nodeDeployment }: { readonly nodeDeployment: boolean },
): CapacityMode['is'] | undefined {
  switch (text.toLowerCase()) {
    case 'false':
      return undefined
    case 'true':
      return nodeDeployment ? 'local' : 'central'
    case 'local':
    case 'central':
      return text.toLowerCase() as CapacityMode['is']
    default:
      throw new Error(`expected false, true, central or local, not ${JSON.stringify(text)}`)
  }
}
