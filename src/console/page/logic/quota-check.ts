// Computes the usage of quotas after a request, and the number of claims that still fit. Quotas limit the storage and the number
// of claims in a namespace, in total and by class.
import type { QuotaRow } from '../rows/cluster.ts'
import { parseBytes } from './quantity.ts'

const CLASS_SUFFIX = '.storageclass.storage.k8s.io/'

export interface QuotaLimit {
  readonly namespace: string
  readonly quota: string
  /** The quota's key, such as `requests.storage`. */
  readonly key: string
  /** Undefined for a limit of all classes. */
  readonly className: string | undefined
  readonly unit: 'bytes' | 'claims'
  readonly hard: number
  /** Undefined until the quota controller has computed it. */
  readonly used: number | undefined
}

/** Returns the limits for storage of a quota. Other resources, such as pods, are omitted. */
export function storageLimits(quota: QuotaRow): QuotaLimit[] {
  return Object.entries(quota.hard).flatMap(([key, hardText]) => {
    const [className, resource] = key.includes(CLASS_SUFFIX)
      ? (key.split(CLASS_SUFFIX) as [string, string])
      : [undefined, key]
    const unit =
      resource === 'requests.storage' ? 'bytes' : resource === 'persistentvolumeclaims' ? 'claims' : undefined
    const hard = parseBytes(hardText)
    if (!unit || hard === undefined) return []
    return [
      { namespace: quota.namespace, quota: quota.name, key, className, unit, hard, used: parseBytes(quota.used[key]) },
    ]
  })
}

interface QuotaRequest {
  readonly namespace: string
  readonly className: string | undefined
  /** Additional bytes and claims. */
  readonly bytes: number
  readonly claims: number
}

export interface QuotaEffect {
  readonly limit: QuotaLimit
  /** Undefined if the usage is not known yet. */
  readonly usedAfter: number | undefined
  readonly fits: boolean | undefined
}

/** Returns the effect of a request on each limit that applies to it. */
export function computeQuotaEffects(quotas: Iterable<QuotaRow>, request: QuotaRequest): QuotaEffect[] {
  const effects: QuotaEffect[] = []
  for (const quota of quotas) {
    if (quota.namespace !== request.namespace) continue
    for (const limit of storageLimits(quota)) {
      const amount = limit.unit === 'bytes' ? request.bytes : request.claims
      if (amount === 0 || (limit.className !== undefined && limit.className !== request.className)) continue
      const usedAfter = limit.used === undefined ? undefined : limit.used + amount
      effects.push({ limit, usedAfter, fits: usedAfter === undefined ? undefined : usedAfter <= limit.hard })
    }
  }
  return effects
}

/** Returns how many claims of a size still fit into all limits, or undefined if no limit with known usage applies. */
export function countFittingClaims(
  quotas: Iterable<QuotaRow>,
  { namespace, className, bytes }: Omit<QuotaRequest, 'claims'>,
): number | undefined {
  const counts = computeQuotaEffects(quotas, { namespace, className, bytes, claims: 1 }).flatMap(({ limit }) =>
    limit.used === undefined
      ? []
      : [Math.max(0, Math.floor((limit.hard - limit.used) / (limit.unit === 'bytes' ? bytes : 1)))],
  )
  return counts.length === 0 ? undefined : Math.min(...counts)
}
