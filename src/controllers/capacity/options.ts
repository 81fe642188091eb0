// What a producer of capacity objects can be told, and what it does when it is not. The defaults are those of
// external-provisioner, but for the rate of writes: without a limit there is none.

import type { RateLimit } from '../../client/index.ts'
import type { Backoff } from '../../runtime/backoff.ts'

/** One producer for all nodes of the cluster, or one on each node for that node. */
export type CapacityMode =
  | { readonly is: 'central' }
  /** `segments`: where the driver says the node is. Absent: it is asked. */
  | { readonly is: 'local'; readonly node: string; readonly segments?: Readonly<Record<string, string>> }

export interface CapacityOptions {
  /** Where the objects are; those of other namespaces are not seen. */
  readonly namespace: string
  /** After this long without any other reason an item is asked about again. Default 1 min. */
  readonly pollIntervalMs?: number
  /** Items worked on at once. Default 1. */
  readonly workers?: number
  /** For one call of the driver. Default 10 s. */
  readonly timeoutMs?: number
  /** Classes whose volumes do not wait for a pod get objects too. Default false. */
  readonly immediateBinding?: boolean
  /** Between two tries for one item: from, doubling, to. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** The pod this runs in, and how many controllers above it the objects belong to. Absent: to nobody. */
  readonly owner?: { readonly podName: string; readonly level: number }
  /** Writes of capacity objects. Absent: as many as there are. */
  readonly writes?: RateLimit
  /** Volume changes are gathered until none came for so long, and never longer than that. Default 100 ms and 1 s. */
  readonly batchQuietMs?: number
  readonly batchMs?: number
  /** Other producers run in this process too: the queue carries the driver's name. Default false. */
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

/** What `--enable-capacity` says; `true` means what the deployment is. Undefined: no capacity is published. */
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
