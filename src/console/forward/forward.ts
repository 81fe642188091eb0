// Forwards requests of the page to the API server with the user's credentials, and streams the responses back. Only the listed
// headers are forwarded in either direction, so that neither cookies nor impersonation headers reach the API server.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { methodNotAllowed, tooManyRequests } from '../../api/status-error.ts'
import type { Transport } from '../../client/http/transport.ts'
import { readBody } from '../http/body.ts'
import { SECURITY_HEADERS } from '../http/security-headers.ts'
import { parseApiPath } from './forward-rules.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
const REQUEST_HEADERS = ['accept', 'accept-encoding', 'content-type'] as const
const RESPONSE_HEADERS = ['content-type', 'content-encoding', 'retry-after', 'warning', 'audit-id'] as const
/** Further requests are rejected with 429. Browsers open at most six connections per host. */
const REQUESTS_IN_FLIGHT_MAX = 64
/** A larger response is cut off. The page requests lists in pages. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024

export interface ForwardOptions {
  readonly transport: Transport
  /** Called after a 401, so that an exec plugin is called again. */
  invalidateCredentials(): void
}

export function createForward({ transport, invalidateCredentials }: ForwardOptions) {
  let inFlight = 0

  async function send(incoming: IncomingMessage, target: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { path } = parseApiPath(target)
    const method = incoming.method ?? 'GET'
    if (!METHODS.has(method)) throw methodNotAllowed()
    const body = method === 'GET' ? undefined : await readBody(incoming)
    const headers = Object.fromEntries(
      REQUEST_HEADERS.flatMap((name) => (incoming.headers[name] ? [[name, String(incoming.headers[name])]] : [])),
    )
    const upstreamResponse = await transport.open({ method, path, headers, signal, ...(body ? { body } : {}) })
    if (upstreamResponse.statusCode === 401) invalidateCredentials()
    return upstreamResponse
  }

  return async (incoming: IncomingMessage, response: ServerResponse, target: string): Promise<void> => {
    if (inFlight >= REQUESTS_IN_FLIGHT_MAX) throw tooManyRequests('the console forwards too many requests')
    inFlight++
    const controller = new AbortController()
    response.once('close', () => controller.abort())
    try {
      const upstreamResponse = await send(incoming, target, controller.signal)
      const headers = RESPONSE_HEADERS.flatMap((name) =>
        upstreamResponse.headers[name] ? [[name, upstreamResponse.headers[name]]] : [],
      )
      response.writeHead(upstreamResponse.statusCode ?? 502, {
        ...SECURITY_HEADERS,
        'cache-control': 'no-store',
        ...Object.fromEntries(headers),
      })
      await pipeline(upstreamResponse, limitBytes, response)
    } finally {
      inFlight--
    }
  }
}

async function* limitBytes(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > RESPONSE_BYTES_MAX) throw new Error(`the response is larger than ${RESPONSE_BYTES_MAX} bytes`)
    yield chunk
  }
}
