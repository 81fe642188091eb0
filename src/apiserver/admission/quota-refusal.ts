// The error of a write that would exceed a quota. It names the object, if that exists already, so that the executor of
// the write can record a Warning event on it (../refusal-events.ts).
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
  /** Absent for a create and in a dry run. */
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
  const about = old && !dryRun ? { apiVersion, kind: kind.kind, namespace, name, uid: old.metadata.uid } : undefined
  return new QuotaRefusal(forbidden(resource, name, why), { quotaName, why, about })
}
