// Converts errors of the store to API errors. HTTP requests and the in-process client use the same conversion: a component must
// not handle an outage differently because it shares the server process.
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
  DamagedRecordError,
  FutureRevisionError,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  UndecryptableError,
  WriteRejectedError,
} from '../store/index.ts'
import { describeKey } from './keys.ts'

/** Returns undefined for an error that does not come from the store. */
export function apiErrorOfStore(error: unknown): ApiError | undefined {
  if (error instanceof CompactedError) {
    return expired(`too old resource version: changes up to ${error.compactedRevision} are compacted; list again`)
  }
  if (error instanceof FutureRevisionError)
    return resourceVersionTooLarge(error.requestedRevision, error.newestRevision)
  if (error instanceof StoreBusyError) return tooManyRequests(error.message)
  if (error instanceof StoreClosedError) return unavailable('the server is shutting down; try again')
  if (error instanceof StoreUnavailableError) return unavailable(error.message)
  if (error instanceof UndecryptableError) return internalError(error.message)
  if (error instanceof DamagedRecordError) return internalError(describeDamage(error))
  if (error instanceof WriteRejectedError) {
    return Object.assign(internalError(`the store rejected the write: ${error.message}`), { cause: error })
  }
  return undefined
}

const describeDamage = ({ key, revision, reason }: DamagedRecordError): string =>
  `the stored ${describeKey(key)} is damaged at revision ${revision}: ${reason}. ` +
  'Stop the server, list all damage with "stowage store check", and restore or drop the object with "stowage store repair".'
