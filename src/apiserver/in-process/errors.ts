// What the store's own failures mean to a client: the answers the API server would have given over the wire.
import {
  ApiError,
  expired,
  internalError,
  tooManyRequests,
  unavailable,
  versionTooLarge,
} from '../../api/status-error.ts'
import { CompactedError, FutureRevisionError, StoreBusyError, StoreClosedError } from '../../store/index.ts'

export function explainStoreError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof CompactedError) {
    return expired(`too old resource version: changes up to ${error.compactedRevision} are no longer kept; list again`)
  }
  if (error instanceof FutureRevisionError) return versionTooLarge(error.asked, error.newest)
  if (error instanceof StoreBusyError) return tooManyRequests(error.message)
  if (error instanceof StoreClosedError) return unavailable(error.message)
  const message = error instanceof Error ? error.message : String(error)
  return Object.assign(internalError(message), { cause: error })
}
