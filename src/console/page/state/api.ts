// Requests to the console's server. A failed request throws ApiFailure with the message of the response, if it has one.
import { signal } from '@preact/signals'
import type { Status } from '../../protocol.ts'

class ApiFailure extends Error {
  override readonly name = 'ApiFailure'
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string, message: string) {
    super(message)
    this.code = code
    this.reason = reason
  }
}

/** Whether the server accepts the cookie. */
export const isSignedIn = signal(true)
/** Whether this page has shown data, which remains visible when the session ends. */
export const wasSignedIn = signal(false)

interface RequestOptions {
  readonly method?: string
  readonly body?: unknown
  readonly contentType?: string
  readonly signal?: AbortSignal
}

export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = 'GET', body, contentType = 'application/json', signal: abortSignal } = options
  let response: Response
  try {
    response = await fetch(path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': contentType } }),
      ...(abortSignal ? { signal: abortSignal } : {}),
    })
  } catch (error) {
    if (abortSignal?.aborted) throw error
    throw new ApiFailure(
      0,
      'Unreachable',
      'The console is not responding. Check that `stowage console` or `stowage up` is still running.',
    )
  }
  if (path.startsWith('/data/')) isSignedIn.value = response.status !== 401
  if (response.ok && path.startsWith('/data/')) wasSignedIn.value = true
  const text = await response.text()
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T
  throw failureOf(response.status, text)
}

function failureOf(code: number, text: string): ApiFailure {
  try {
    const { reason, message } = JSON.parse(text) as Status
    if (message) return new ApiFailure(code, reason ?? '', message)
  } catch {
    // A proxy may respond with plain text.
  }
  return new ApiFailure(code, '', text.slice(0, 500) || `The server responded with status ${code}.`)
}

/** Exchanges the token of the printed URL for a session, and removes it from the address bar. */
export async function openSession(): Promise<void> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1]
  if (token === undefined) return
  history.replaceState(null, '', location.pathname)
  try {
    await request('/session', { method: 'POST', body: { token } })
    isSignedIn.value = true
  } catch (error) {
    if (error instanceof ApiFailure && error.code >= 400 && error.code < 500) isSignedIn.value = false
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
