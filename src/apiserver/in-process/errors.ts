// Converts errors to ApiErrors for the in-process client.
import { ApiError, internalError } from '../../api/status-error.ts'
import { apiErrorOfStore } from '../store-errors.ts'

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const message = error instanceof Error ? error.message : String(error)
  return apiErrorOfStore(error) ?? Object.assign(internalError(message), { cause: error })
}
