// The errors of the console's own routes. Errors of the API server are passed on unchanged.
import { ApiError } from '../api/status-error.ts'

/** Makes the page ask the user to open the printed URL. The reason distinguishes the error from a 401 of the API server. */
export const sessionRequired = (): ApiError =>
  new ApiError(401, 'SessionRequired', 'There is no session, or it has ended. Open the URL that the console printed.')

export const wrongToken = (): ApiError =>
  new ApiError(
    401,
    'SessionRequired',
    'The token is wrong: it belongs to another console, or to an earlier start. Open the URL that the console printed last.',
  )

export const wrongHost = (host: string | undefined, allowed: readonly string[]): ApiError =>
  new ApiError(
    421,
    'MisdirectedRequest',
    `The console does not serve the host ${JSON.stringify(host ?? '')}. Open it as ${allowed.join(' or ')}.`,
  )

export const wrongOrigin = (origin: string | undefined): ApiError =>
  new ApiError(
    403,
    'Forbidden',
    origin === undefined
      ? 'The request has no Origin header. The console accepts writes only from its own page.'
      : `The console accepts requests only from its own page, not from ${origin}.`,
  )

export const notForwarded = (what: string): ApiError =>
  new ApiError(403, 'Forbidden', `The console does not forward ${what}. Use kubectl instead.`)

export const unsupportedBodyType = (contentType: string | undefined): ApiError =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `A request with a body needs a content type of JSON or YAML, such as application/json (got ${contentType || 'none'}).`,
  )
