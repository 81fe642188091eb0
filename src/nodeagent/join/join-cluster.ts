// Joins a cluster: verifies the server by the pinned CA, requests a certificate with the bootstrap token, and saves both in the
// agent's root directory.
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import { httpClient } from '../../client/index.ts'
import { discoverCa } from './discover-ca.ts'
import { saveCredentials } from './node-credentials.ts'
import { requestCertificate } from './request-certificate.ts'

export interface JoinOptions {
  readonly root: string
  readonly nodeName: string
  /** URL of the API server. */
  readonly server: string
  readonly token: string
  readonly pins: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

export async function joinCluster(options: JoinOptions): Promise<void> {
  const { root, nodeName, token, pins, clock, log, signal } = options
  const server = options.server.replace(/\/+$/, '')
  const ca = await discoverCa({ server, pins, clock, signal })
  const client = httpClient({ connection: { server, ca, credentials: async () => ({ token }) }, clock })
  try {
    const onWaiting = (request: string) =>
      log.warn(
        { nodeName, request },
        `waiting until an administrator approves the certificate with: kubectl certificate approve ${request}`,
      )
    const pair = await requestCertificate({ client, nodeName, clock, signal, onWaiting })
    await saveCredentials(root, { server, ca, nodeName }, pair)
    log.info({ nodeName, server }, 'joined the cluster')
  } catch (error) {
    throw isRefused(error) ? refusedError(error as ApiError, nodeName, server) : error
  } finally {
    client.close()
  }
}

const isRefused = (error: unknown): boolean => error instanceof ApiError && (error.code === 401 || error.code === 403)

const refusedError = ({ message }: ApiError, nodeName: string, server: string): UsageError =>
  new UsageError(
    `Cannot join ${server} as node "${nodeName}": ${message}. ` +
      `Create a token for this node with "stowage token create --node ${nodeName}" and join with it.`,
  )
