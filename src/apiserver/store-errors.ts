// The response to each error of the store, the same for HTTP requests and for the in-process client: a component must not
// handle an outage differently because it shares the process of the server.
import {
  type ApiError,
  expired,
  internalError,
  resourceVersionTooLarge,
  tooManyRequests,
  unavailable,
} from '../api/status-error.ts'
import {
  CompactedError,
  FutureRevisionError,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  UndecryptableError,
  WriteRejectedError,
} from '../store/index.ts'

/** Returns undefined for an error that does not come from the store. */
export function apiErrorOfStore(error: unknown): ApiError | undefined {
  if (error instanceof CompactedError) {
    return expired(`too old resource version: changes up to ${error.compactedRevision} are compacted; list again`)
  }
  if (error instanceof FutureRevisionError) return resourceVersionTooLarge(error.requested, error.newest)
  if (error instanceof StoreBusyError) return tooManyRequests(error.message)
  if (error instanceof StoreClosedError) return unavailable('the server is shutting down; try again')
  if (error instanceof StoreUnavailableError) return unavailable(error.message)
  if (error instanceof UndecryptableError) return internalError(error.message)
  if (error instanceof WriteRejectedError) {
    return Object.assign(internalError(`the store rejected the write: ${error.message}`), { cause: error })
  }
  return undefined
}
