// Maintains an index record per namespace with the names of its quotas and limit ranges. Every write that creates or
// deletes one of them, or changes its spec, also writes the record. A write to which a quota or limit range may apply reads the
// record first, for two reasons:
//  - in a namespace without quotas or limit ranges, one lookup is enough;
//  - the read is a condition of the transaction (`find`): the transaction is repeated if another server changes the quotas
//    or limit ranges before the commit. `list` has no such guarantee.
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

/** Maximum number of quotas and of limit ranges in a namespace. An etcd transaction has at most 128 operations. */
export const NAMESPACE_LIMITS_MAX = 100

/** The index record, which is stored like an object but not served by the API. */
interface LimitsRecord extends KubeObject {
  readonly resourcequotas: readonly string[]
  readonly limitranges: readonly string[]
}

const RECORD_COLLECTION = { group: 'stowage.dev', plural: 'namespacelimits', namespaced: false }
const RECORDED_PLURALS = ['resourcequotas', 'limitranges'] as const

/** Returns the quotas of the request's namespace. */
export function quotaAccountsOf(request: AdmissionRequest): readonly QuotaAccount[] {
  if (!hasLimits(request, 'resourcequotas')) return NO_ACCOUNTS
  const quotas = request.listLive(resourceQuotaKind, request.namespace)
  return quotas.map((quota) =>
    quota instanceof QuotaAccount ? quota : QuotaAccount.create(quota as Shared<ResourceQuota>),
  )
}

const NO_ACCOUNTS: readonly QuotaAccount[] = []

/** Returns the limit ranges of the request's namespace. */
export const limitRangesOf = (request: AdmissionRequest): readonly LimitRange[] =>
  hasLimits(request, 'limitranges') ? request.list(limitRangeKind, request.namespace) : []

const hasLimits = (request: AdmissionRequest, plural: (typeof RECORDED_PLURALS)[number]): boolean =>
  (recordOf(request)?.[plural].length ?? 0) > 0

const recordOf = ({ find, namespace }: AdmissionRequest): Shared<LimitsRecord> | undefined =>
  find<LimitsRecord>(RECORD_COLLECTION, '', namespace)

export const namespaceLimits: AdmissionPlugin = {
  name: 'NamespaceLimits',
  validate(request) {
    const { resource, operation, oldObject, resultingObject, name } = request
    const plural = RECORDED_PLURALS.find(
      (recordedPlural) => resource.group === '' && resource.plural === recordedPlural,
    )
    if (!plural) return undefined
    const record = recordOf(request)
    const names = record?.[plural] ?? []
    if (operation === 'CREATE' && names.length >= NAMESPACE_LIMITS_MAX) {
      const message = `the namespace already has ${NAMESPACE_LIMITS_MAX} ${plural}, the maximum; delete one or merge two`
      throw forbidden(resource, name, message)
    }
    const isSameSpec = oldObject && resultingObject && jsonEquals(specOf(oldObject), specOf(resultingObject))
    if (isSameSpec && names.includes(name)) return undefined
    const otherNames = names.filter((otherName) => otherName !== name)
    return [writeOfRecord(request, record, { [plural]: resultingObject ? [...otherNames, name] : otherNames })]
  },
}

const specOf = ({ spec }: AnyObject): JsonValue => spec ?? null

function writeOfRecord(
  { namespace }: AdmissionRequest,
  record: Shared<LimitsRecord> | undefined,
  change: Partial<LimitsRecord>,
): Write {
  const { resourcequotas = [], limitranges = [] } = { ...record, ...change }
  const key = objectKey(RECORD_COLLECTION, '', namespace)
  if (resourcequotas.length === 0 && limitranges.length === 0) return { delete: key }
  const newRecord: LimitsRecord = { metadata: { name: namespace }, resourcequotas, limitranges }
  return { put: key, value: encodeStored(newRecord) }
}
