// Sends the first request of `stowage doctor` to the API server, and reads the certificate that the server presents.
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import type { Clock } from '../../../base/clock.ts'
import type { Transport } from '../../../client/http/transport.ts'
import type { Connection } from '../../../client/index.ts'

/** The response to GET /version. */
export interface VersionResponse {
  /** `v1.36.0`. Absent if the server does not respond to this user with a version. */
  readonly version?: string
  /** The time of the server's Date header, in whole seconds. */
  readonly dateMs?: number
  /** The times of this machine at which the request was sent and the response was complete. */
  readonly sentMs: number
  readonly receivedMs: number
}

/** Rejects with an ApiError if the server cannot be reached. */
export async function probeServer(transport: Transport, clock: Clock, signal: AbortSignal): Promise<VersionResponse> {
  const sentMs = clock.nowMs()
  const { status, headers, text } = await transport.call({ method: 'GET', path: '/version', signal })
  const dateMs = Date.parse(headers.date ?? '')
  return {
    ...(status === 200 ? { version: readVersion(text) } : {}),
    ...(Number.isNaN(dateMs) ? {} : { dateMs }),
    sentMs,
    receivedMs: clock.nowMs(),
  }
}

/** Returns the time of the API server, or the time of this machine if the server sent no Date header. */
export const serverTimeMs = ({ dateMs, receivedMs }: VersionResponse, clock: Clock): number =>
  dateMs === undefined ? clock.nowMs() : dateMs + (clock.nowMs() - receivedMs)

function readVersion(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly gitVersion?: string }).gitVersion
  } catch {
    return undefined
  }
}

const TIMEOUT_MS = 5_000

/**
 * Returns the certificate of the server without verifying it, so that an expired one can be described. Sends no credentials.
 * Returns undefined if the server cannot be reached or does not use TLS.
 */
export function readServerCertificate({
  server,
  serverName,
}: Pick<Connection, 'server' | 'serverName'>): Promise<X509Certificate | undefined> {
  const { protocol, hostname, port } = new URL(server)
  if (protocol !== 'https:') return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const servername = serverName ?? (/^[\d.]+$|:/.test(host) ? '' : host)
    const socket = connect({ host, port: Number(port || 443), servername, rejectUnauthorized: false })
    const finish = (certificate?: X509Certificate) => {
      socket.destroy()
      resolve(certificate)
    }
    socket.setTimeout(TIMEOUT_MS, () => finish())
    socket.once('error', () => finish())
    socket.once('secureConnect', () => {
      const { raw } = socket.getPeerCertificate()
      finish(raw ? new X509Certificate(raw) : undefined)
    })
  })
}
