// Keeps an index record per namespace that lists its quotas and limit ranges. Every write that creates or deletes one, or
// changes its spec, also writes the record; every write that they may apply to reads it:
//  - in a namespace without any, that is one lookup that finds nothing;
//  - the read is a condition of the transaction (`find`), so the quotas and limit ranges that a write was checked against
//    are still in force when it is done, even if another server changes them meanwhile. `list` gives no such guarantee.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { limitRangeKind } from '../../api/kinds/limit-range/limit-range.ts'
import type { LimitRange } from '../../api/kinds/limit-range/limit-range-schema.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { QuotaAccount } from '../../api/quota/index.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Write } from '../../store/index.ts'
import { objectKey } from '../keys.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { encodeStored, type Shared } from '../objects/stored-object.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

/** Quotas per namespace, and limit ranges per namespace; creating more is rejected. etcd takes 128 writes at once. */
export const NAMESPACE_LIMITS_MAX = 100

/** Stored like an object, but not served by the API. */
interface LimitsRecord extends KubeObject {
  readonly resourcequotas: readonly string[]
  readonly limitranges: readonly string[]
}

const RECORDS = { group: 'stowage.dev', plural: 'namespacelimits', namespaced: false }
const RECORDED = ['resourcequotas', 'limitranges'] as const

/** The quotas of the request's namespace. */
export function accountsOf(request: AdmissionRequest): readonly QuotaAccount[] {
  if (!hasAny(request, 'resourcequotas')) return NO_ACCOUNTS
  const found = request.listLive(resourceQuotaKind, request.namespace)
  return found.map((quota) => (quota instanceof QuotaAccount ? quota : QuotaAccount.of(quota as Shared<ResourceQuota>)))
}

const NO_ACCOUNTS: readonly QuotaAccount[] = []

/** The limit ranges of the request's namespace. */
export const limitRangesOf = (request: AdmissionRequest): readonly LimitRange[] =>
  hasAny(request, 'limitranges') ? request.list(limitRangeKind, request.namespace) : []

const hasAny = (request: AdmissionRequest, plural: (typeof RECORDED)[number]): boolean =>
  (recordOf(request)?.[plural].length ?? 0) > 0

const recordOf = ({ find, namespace }: AdmissionRequest): Shared<LimitsRecord> | undefined =>
  find<LimitsRecord>(RECORDS, '', namespace)

export const namespaceLimits: AdmissionPlugin = {
  name: 'NamespaceLimits',
  validate(request) {
    const { resource, operation, old, after, name } = request
    const plural = RECORDED.find((recorded) => resource.group === '' && resource.plural === recorded)
    if (!plural) return undefined
    const record = recordOf(request)
    const names = record?.[plural] ?? []
    if (operation === 'CREATE' && names.length >= NAMESPACE_LIMITS_MAX) {
      const why = `the namespace already has ${NAMESPACE_LIMITS_MAX} ${plural}, the maximum; delete one or merge two`
      throw forbidden(resource, name, why)
    }
    const isSame = old && after && jsonEquals(specOf(old), specOf(after))
    if (isSame && names.includes(name)) return undefined
    const others = names.filter((other) => other !== name)
    return [recordWrite(request, record, { [plural]: after ? [...others, name] : others })]
  },
}

const specOf = ({ spec }: AnyObject): JsonValue => spec ?? null

function recordWrite(
  { namespace }: AdmissionRequest,
  record: Shared<LimitsRecord> | undefined,
  change: Partial<LimitsRecord>,
): Write {
  const { resourcequotas = [], limitranges = [] } = { ...record, ...change }
  const key = objectKey(RECORDS, '', namespace)
  if (resourcequotas.length === 0 && limitranges.length === 0) return { delete: key }
  const next: LimitsRecord = { metadata: { name: namespace }, resourcequotas, limitranges }
  return { put: key, value: encodeStored(next) }
}
