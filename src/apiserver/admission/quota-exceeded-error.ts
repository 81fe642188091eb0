// The error of a write that would exceed a quota. For an update it refers to the object, so that ../quota-events.ts can
// record a Warning event on it.
import { ApiError, forbidden } from '../../api/status-error.ts'
import type { AdmissionRequest } from './admission.ts'

export interface InvolvedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export class QuotaExceededError extends ApiError {
  readonly quotaName: string
  readonly detail: string
  /** The object of a rejected update. Absent for a create and for a dry run. */
  readonly involvedObject: InvolvedObject | undefined

  constructor(status: ApiError, fields: Pick<QuotaExceededError, 'quotaName' | 'detail' | 'involvedObject'>) {
    super(status.code, status.reason, status.message, status.details)
    this.quotaName = fields.quotaName
    this.detail = fields.detail
    this.involvedObject = fields.involvedObject
  }
}

export function quotaExceeded(request: AdmissionRequest, quotaName: string, detail: string): QuotaExceededError {
  const { resource, namespace, name, oldObject, dryRun } = request
  const { apiVersion, kind } = resource
  const involvedObject =
    oldObject && !dryRun ? { apiVersion, kind: kind.kind, namespace, name, uid: oldObject.metadata.uid } : undefined
  return new QuotaExceededError(forbidden(resource, name, detail), { quotaName, detail, involvedObject })
}
