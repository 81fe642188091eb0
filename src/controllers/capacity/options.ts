// Options of the capacity producer, and the parser of `--enable-capacity`.

import type { RateLimit } from '../../client/index.ts'
import type { Backoff } from '../../runtime/backoff.ts'

/** Either one producer for all nodes of the cluster, or one producer on each node. */
export type CapacityMode =
  | { readonly is: 'central' }
  /** `segments` is the node's topology. By default it is read with NodeGetInfo. */
  | { readonly is: 'local'; readonly node: string; readonly segments?: Readonly<Record<string, string>> }

export interface CapacityOptions {
  /** Namespace of the objects. Other namespaces are ignored. */
  readonly namespace: string
  /** Interval between two GetCapacity calls for an item without changes. Default 1 min. */
  readonly pollIntervalMs?: number
  /** Items reconciled at once. Default 1. */
  readonly workers?: number
  /** Timeout of one driver call. Default 10 s. */
  readonly timeoutMs?: number
  /** Whether to produce objects for classes with immediate binding. Default false. */
  readonly immediateBinding?: boolean
  /** Initial delay between two attempts for an item, doubled after each failure. Default 1 s. */
  readonly retryIntervalStartMs?: number
  /** Maximum delay between two attempts for an item. Default 5 min. */
  readonly retryIntervalMaxMs?: number
  /** The pod of this process, and the number of controllers from the pod up to the owner. By default there is no owner. */
  readonly owner?: { readonly podName: string; readonly level: number }
  /** Rate limit of writes of capacity objects. By default there is no limit. */
  readonly writeRateLimit?: RateLimit
  /** Pause after which a batch of volume changes is processed. Default 100 ms. */
  readonly batchQuietMs?: number
  /** Maximum duration of a batch of volume changes. Default 1 s. */
  readonly batchMaxMs?: number
  /** Whether the process runs producers of several drivers. If true, queue names include the driver's name. Default false. */
  readonly prefixesQueueNames?: boolean
}

export interface CapacitySettings extends Required<Omit<CapacityOptions, 'owner' | 'writeRateLimit'>> {
  readonly owner?: CapacityOptions['owner']
  readonly writeRateLimit?: RateLimit
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
  batchMaxMs: 1_000,
  prefixesQueueNames: false,
} as const

export function settingsOf(options: CapacityOptions): CapacitySettings {
  const settings = { ...DEFAULTS, ...options }
  if (settings.namespace === '') {
    throw new Error(
      'Cannot publish capacity: the namespace of the objects is empty. Set $NAMESPACE to the namespace of the pod.',
    )
  }
  return { ...settings, backoff: { baseMs: settings.retryIntervalStartMs, maxMs: settings.retryIntervalMaxMs } }
}

/** Parses `--enable-capacity`; `true` selects the mode by the deployment. Returns undefined if capacity is disabled. */
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
