// Between objects as we hold them and as they travel: the kind is said on the wire and left out within.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { ApiError } from '../../api/status-error.ts'

export const apiVersionOf = ({ group }: Kind, version: string): string => (group ? `${group}/${version}` : version)

export function plainObject<T extends KubeObject>(wire: any): Stored<T> {
  const { kind: _, apiVersion: __, ...object } = wire
  return object
}

/** A failure answer as the error it stands for, also when a proxy in between wrote it and it is no Status. */
export function errorOfStatus(status: unknown, httpCode: number, text = ''): ApiError {
  if (typeof status === 'object' && status !== null && (status as any).kind === 'Status') {
    const { code = httpCode, reason = 'Unknown', message = '', details, metadata } = status as any
    return new ApiError(code, reason, message || `the server answered ${code}`, details, metadata?.continue)
  }
  const reason = REASONS[httpCode] ?? 'Unknown'
  return new ApiError(httpCode, reason, `the server answered ${httpCode}: ${text.slice(0, 200) || 'no text'}`)
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  429: 'TooManyRequests',
  500: 'InternalError',
  502: 'BadGateway',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}
