// The answer of a quota that a write would exceed. It knows the object it speaks of, where there is one already, so that
// whoever made the transaction can leave a Warning event on it (../refusal-events.ts).
import { ApiError, forbidden } from '../../api/status-error.ts'
import type { AdmissionRequest } from './admission.ts'

export interface RefusedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export class QuotaRefusal extends ApiError {
  readonly quotaName: string
  readonly why: string
  /** Absent for an object that was to be created, and in a dry run. */
  readonly about: RefusedObject | undefined

  constructor(status: ApiError, of: Pick<QuotaRefusal, 'quotaName' | 'why' | 'about'>) {
    super(status.code, status.reason, status.message, status.details)
    this.quotaName = of.quotaName
    this.why = of.why
    this.about = of.about
  }
}

export function refusedByQuota(request: AdmissionRequest, quotaName: string, why: string): QuotaRefusal {
  const { resource, namespace, name, old, dryRun } = request
  const { apiVersion, kind } = resource
  const about =
    old && !dryRun ? { apiVersion, kind: kind.kind, namespace, name, uid: old.metadata.uid ?? '' } : undefined
  return new QuotaRefusal(forbidden(resource, name, why), { quotaName, why, about })
}
