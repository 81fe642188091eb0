// Keeps one mark per namespace that has quotas or limit ranges: which they are. It is written with every write that
// brings one, takes one away or changes what one asks for, and read by every write that they might concern:
//  - a namespace without any pays one look-up that finds nothing;
//  - the read is a condition of the transaction (`find`), so what a write concluded from the quotas and limit ranges it
//    saw still holds when it is done, whichever server changes them meanwhile. `list` alone would promise nothing.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { LimitRange } from '../../api/kinds/limit-range/limit-range-schema.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { QuotaAccount } from '../../api/quota/index.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AdmissionPlugin, AdmissionRequest, ObjectWrite } from './admission.ts'

/** So many quotas, and so many limit ranges, may one namespace have; more are refused. etcd takes 128 writes at once. */
export const NAMESPACE_LIMITS_MAX = 100

/** Stored like an object, but no kind of the API. */
interface LimitsMark extends KubeObject {
  readonly resourcequotas: readonly string[]
  readonly limitranges: readonly string[]
}

const MARK = { group: 'stowage.dev', plural: 'namespacelimits' }
const MARKED = ['resourcequotas', 'limitranges'] as const

/** The quotas of the request's namespace. */
export function accountsOf(request: AdmissionRequest): readonly QuotaAccount[] {
  if (!hasAny(request, 'resourcequotas')) return NO_ACCOUNTS
  const found = request.listRunning('', 'resourcequotas', request.namespace)
  return found.map((quota) => (quota instanceof QuotaAccount ? quota : QuotaAccount.of(quota as ResourceQuota)))
}

const NO_ACCOUNTS: readonly QuotaAccount[] = []

/** The limit ranges of the request's namespace. */
export const limitRangesOf = (request: AdmissionRequest): readonly LimitRange[] =>
  hasAny(request, 'limitranges') ? (request.list('', 'limitranges', request.namespace) as any) : []

const hasAny = (request: AdmissionRequest, plural: (typeof MARKED)[number]): boolean =>
  (markOf(request)?.[plural].length ?? 0) > 0

const markOf = ({ find, namespace }: AdmissionRequest): LimitsMark | undefined =>
  find(MARK.group, MARK.plural, '', namespace) as LimitsMark | undefined

export const namespaceLimits: AdmissionPlugin = {
  name: 'NamespaceLimits',
  validate(request) {
    const { resource, operation, old, after, name } = request
    const plural = MARKED.find((marked) => resource.group === '' && resource.plural === marked)
    if (!plural) return undefined
    const mark = markOf(request)
    const names = mark?.[plural] ?? []
    if (operation === 'CREATE' && names.length >= NAMESPACE_LIMITS_MAX) {
      const why = `a namespace may have ${NAMESPACE_LIMITS_MAX} ${plural}; delete one, or put its bounds into another`
      throw forbidden(resource, name, why)
    }
    const isSame = old && after && jsonEquals(asks(old), asks(after))
    if (isSame && names.includes(name)) return undefined
    const others = names.filter((other) => other !== name)
    return [markWrite(request, mark, { [plural]: after ? [...others, name] : others })]
  },
}

const asks = ({ spec }: any): JsonValue => spec ?? null

function markWrite(
  { namespace }: AdmissionRequest,
  mark: LimitsMark | undefined,
  change: Partial<LimitsMark>,
): ObjectWrite {
  const { resourcequotas = [], limitranges = [] } = { ...mark, ...change }
  const write = { ...MARK, namespace: '', name: namespace }
  if (resourcequotas.length === 0 && limitranges.length === 0) return write
  const object: LimitsMark = { metadata: { name: namespace }, resourcequotas, limitranges }
  return { ...write, object }
}
