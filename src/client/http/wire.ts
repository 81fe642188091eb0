// Converts responses to objects and errors. Objects have apiVersion and kind in HTTP messages, but not in the program.

import { isRecord } from '../../api/decode.ts'
import { decodeResponse } from '../../api/decode-response.ts'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { ApiError } from '../../api/status-error.ts'
import type { HttpResponse } from './transport.ts'

export const apiVersionOf = ({ group }: Kind, version: string): string => (group ? `${group}/${version}` : version)

/** Parsed JSON of a response: an object, a list or a Status. */
// biome-ignore lint/suspicious/noExplicitAny: parsed JSON; objectOf gives an object the shape of its kind
export type WireObject = any

/** Returns the object of a response, decoded through the declaration of its kind and frozen. */
export function objectOf<T extends KubeObject>(kind: Kind<T>, wire: WireObject): Readonly<Stored<T>> {
  if (!isRecord(wire)) throw new ApiError(502, 'BadGateway', `the response has no object of kind ${kind.kind}`)
  const { kind: _, apiVersion: __, ...object } = wire
  return decodeResponse(kind.type, object) as Stored<T>
}

/** Returns the body of a successful response. Throws an ApiError for any other. */
export function parseResponse(response: HttpResponse): WireObject {
  if (response.status < 200 || response.status > 299) throw errorOfResponse(response)
  try {
    return JSON.parse(response.text)
  } catch {
    throw new ApiError(502, 'BadGateway', `the response is not JSON: ${response.text.slice(0, 100)}`)
  }
}

export function errorOfResponse({ status, text }: HttpResponse): ApiError {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The body may be empty or an HTML page of a proxy.
  }
  return errorOfStatus(value, status, text)
}

/** Returns a failed request's error. A response without a Status, as from a proxy, is described by its code and text. */
export function errorOfStatus(status: WireObject, httpCode: number, text = ''): ApiError {
  if (status?.kind === 'Status') {
    const { code = httpCode, reason = 'Unknown', message, details, metadata } = status
    return new ApiError(code, reason, message || `the server responded with ${code}`, details, metadata?.continue)
  }
  const reason = REASONS[httpCode] ?? 'Unknown'
  return new ApiError(httpCode, reason, `the server responded with ${httpCode}: ${text.slice(0, 200) || 'no text'}`)
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
