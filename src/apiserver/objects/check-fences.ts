// Parses the fences of a request, and checks those of a write in its transaction: each lease must still be held by the process
// that sent the write, in the same term. The leases are conditions of the transaction, so that a new leader
// cannot acquire one before the write commits.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { LEASE_FENCE_HEADER, type LeaseFence, parseLeaseFences } from '../../api/kinds/lease/lease-fence.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { badRequest, leaseLost } from '../../api/status-error.ts'
import type { TransactionView } from '../../store/index.ts'
import type { ApiRequest } from '../http/messages.ts'
import { objectKey } from '../keys.ts'
import type { ObjectDeps } from './object-deps.ts'
import type { WriteTarget } from './write-verb.ts'

/** Throws 409 with the cause LeaseLost if a lease does not exist, has another holder or is in another term. */
export function checkFences({ objects }: Pick<ObjectDeps, 'objects'>, { fences }: WriteTarget, view: TransactionView) {
  for (const { namespace, name, holder, transitions } of fences ?? NO_FENCES) {
    const entry = view.get(objectKey(leaseKind, namespace, name))
    const { spec } = entry ? (objects.decode(entry) as Readonly<Lease>) : {}
    if (spec?.holderIdentity === holder && (spec.leaseTransitions ?? 0) === transitions) continue
    throw leaseLost({ namespace, name, holder })
  }
}

const NO_FENCES: readonly LeaseFence[] = []

/** Returns the fences of a request. Throws 400 if the header is invalid. */
export function fencesOf({ headers }: Pick<ApiRequest, 'headers'>): readonly LeaseFence[] | undefined {
  const header = headers[LEASE_FENCE_HEADER]
  if (header === undefined) return undefined
  const fences = parseLeaseFences(String(header))
  if (!fences)
    throw badRequest(`the header ${LEASE_FENCE_HEADER} is invalid: expected namespace, name, holder and transitions`)
  return fences
}
