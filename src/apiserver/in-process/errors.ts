// Converts errors of the store to the ApiErrors that a client would receive over HTTP.
import {
  ApiError,
  expired,
  internalError,
  resourceVersionTooLarge,
  tooManyRequests,
  unavailable,
} from '../../api/status-error.ts'
import { CompactedError, FutureRevisionError, StoreBusyError, StoreClosedError } from '../../store/index.ts'

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof CompactedError) {
    return expired(`too old resource version: changes up to ${error.compactedRevision} are compacted; list again`)
  }
  if (error instanceof FutureRevisionError) return resourceVersionTooLarge(error.requested, error.newest)
  if (error instanceof StoreBusyError) return tooManyRequests(error.message)
  if (error instanceof StoreClosedError) return unavailable(error.message)
  const message = error instanceof Error ? error.message : String(error)
  return Object.assign(internalError(message), { cause: error })
}
