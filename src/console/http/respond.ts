// Writes the responses of the console's own routes: JSON, and errors as Kubernetes Status.
import type { ServerResponse } from 'node:http'
import { ApiError, internalError } from '../../api/status-error.ts'
import type { Logger } from '../../base/log.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>

export function sendJson(response: ServerResponse, value: unknown, headers: ResponseHeaders = {}, status = 200): void {
  const body = JSON.stringify(value)
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(body),
    ...(headers as Record<string, string>),
  })
  response.end(body)
}

export function sendError(response: ServerResponse, error: unknown, log: Logger): void {
  const failure = toApiError(error, log)
  if (response.headersSent) {
    response.destroy()
    return
  }
  const retryAfter = failure.details?.retryAfterSeconds
  sendJson(
    response,
    failure.toStatus(),
    {
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      ...(failure.code === 413 ? { connection: 'close' } : {}), // the rest of the body is not read
    },
    failure.code,
  )
}

/** Errors of the user's input and of the API server keep their message; others are logged and returned as 500. */
export function toApiError(error: unknown, log: Logger): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof Error && error.name === 'UsageError') return new ApiError(400, 'BadRequest', error.message)
  log.error({ err: error }, 'cannot handle a request')
  return internalError(error instanceof Error ? error.message : String(error))
}
