// Connects the API server to a node's agent over mutual TLS: the API server presents a certificate that it issued to
// itself, and the agent's certificate must name this node.
import { generateKeyPairSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import type { PeerCertificate } from 'node:tls'
import { encodeName } from '../../api/distinguished-name.ts'
import { API_SERVER_CLIENT_NAME, nodeServingName } from '../../api/kinds/node/node-certificates.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { ApiError, unavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Pki } from '../security/index.ts'

export interface NodeRequest {
  readonly node: Readonly<Node>
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly signal: AbortSignal
}

/** An agent's response: an upgraded connection, or a response with a body that the caller reads. */
export type NodeResponse =
  | { readonly is: 'upgraded'; readonly response: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }
  | { readonly is: 'response'; readonly response: IncomingMessage }

export interface NodeConnections {
  /** Throws 500 or 503 if the agent cannot be reached. */
  send(request: NodeRequest): Promise<NodeResponse>
}

export interface NodeConnectionOptions {
  readonly pki: Pick<Pki, 'caCert' | 'signCertificate'>
  readonly clock: Clock
  /** Returns the address of a node if its agent listens only on this host. Default: the Node's addresses. */
  localAddressOf?(nodeName: string): string | undefined
}

const DIAL_MS_MAX = 10_000
const DAY_MS = 24 * 60 * 60 * 1_000
const CERTIFICATE_LIFETIME_MS = 30 * DAY_MS
const RENEWAL_BEFORE_MS = 10 * DAY_MS
const BACKDATE_MS = 5 * 60 * 1_000

export function createNodeConnections({ pki, clock, localAddressOf }: NodeConnectionOptions): NodeConnections {
  let credential: { readonly cert: string; readonly key: string; readonly notAfterMs: number } | undefined

  /** Issues a new certificate if the current one expires soon. The key never leaves this process. */
  function ensureCredential() {
    const nowMs = clock.nowMs()
    if (credential && credential.notAfterMs - nowMs > RENEWAL_BEFORE_MS) return credential
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const notAfterMs = nowMs + CERTIFICATE_LIFETIME_MS
    const cert = pki.signCertificate({
      use: 'client',
      subject: encodeName({ commonName: API_SERVER_CLIENT_NAME }),
      publicKey,
      alternativeNames: [],
      canEncipherKeys: false,
      notBeforeMs: nowMs - BACKDATE_MS,
      notAfterMs,
    })
    credential = { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, notAfterMs }
    return credential
  }

  return {
    send({ node, method, path, headers, signal }) {
      const nodeName = node.metadata.name!
      const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port
      const host = localAddressOf?.(nodeName) ?? findAddress(node)
      if (!port || !host) {
        throw unavailable(
          `node ${JSON.stringify(nodeName)} serves no logs and commands: its agent runs without --run-commands, or waits for its serving certificate`,
          RETRY_AFTER_SECONDS,
        )
      }
      const { cert, key } = ensureCredential()
      return new Promise((resolve, reject) => {
        const outgoing = httpsRequest({
          host,
          port,
          method,
          path,
          headers: { host: nodeServingName(nodeName), ...(headers as Record<string, string | string[]>) },
          servername: nodeServingName(nodeName),
          ca: pki.caCert,
          cert,
          key,
          minVersion: 'TLSv1.2',
          checkServerIdentity: (_host, certificate) => checkIdentity(nodeName, certificate),
          agent: false,
          signal,
        })
        const cancelTimer = clock.after(DIAL_MS_MAX, () =>
          outgoing.destroy(new Error(`no response within ${DIAL_MS_MAX / 1_000} s`)),
        )
        outgoing.once('upgrade', (response, socket, head) => {
          cancelTimer()
          resolve({ is: 'upgraded', response, socket, head })
        })
        outgoing.once('response', (response) => {
          cancelTimer()
          resolve({ is: 'response', response })
        })
        outgoing.on('error', (error) => {
          cancelTimer()
          reject(
            new ApiError(
              500,
              'InternalError',
              `error dialing backend: node ${JSON.stringify(nodeName)}: ${error.message}`,
            ),
          )
        })
        outgoing.end()
      })
    },
  }
}

const RETRY_AFTER_SECONDS = 5

const ADDRESS_TYPES = ['InternalIP', 'ExternalIP', 'InternalDNS', 'ExternalDNS', 'Hostname']

const findAddress = ({ status }: Readonly<Node>): string | undefined =>
  ADDRESS_TYPES.map((type) => status?.addresses?.find((address) => address.type === type)?.address).find(Boolean)

/** Every node has a certificate of the same CA, so the certificate must name this node. */
function checkIdentity(nodeName: string, certificate: PeerCertificate): Error | undefined {
  const { CN: commonName } = certificate.subject
  const names = (certificate.subjectaltname ?? '').split(', ')
  if (commonName === `system:node:${nodeName}` && names.includes(`DNS:${nodeServingName(nodeName)}`)) return undefined
  return new Error(`the certificate of the agent is for ${JSON.stringify(commonName)}`)
}
