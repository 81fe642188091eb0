// Stores the credentials of a joined node in the agent's root directory, and renews the certificate before it expires.
// Requests use the new certificate immediately.
//   ROOT/kubeconfig      server and CA, with the path of the certificate
//   ROOT/pki/node.pem    certificate and private key, in one file, so that they are replaced together
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import type { Clock, Random } from '../../base/clock.ts'
import { ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import { type Client, type Connection, kubeconfigConnection } from '../../client/index.ts'
import { type KeyAndCertificate, requestCertificate } from './request-certificate.ts'

export interface NodeCredentials {
  readonly nodeName: string
  readonly connection: Connection
  /** Renews the certificate before it expires, until the signal is aborted. The client must use `connection`. */
  renew(options: RenewOptions): Promise<void>
}

export interface RenewOptions {
  readonly client: Pick<Client, 'create' | 'get'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

const NODE_PREFIX = 'system:node:'
const CERTIFICATE_FILE = join('pki', 'node.pem')
/** A certificate is renewed at a random time in this part of its lifetime, so that nodes do not all renew at the same time. */
const RENEWAL_START = 0.7
const RENEWAL_SPREAD = 0.2
const RETRY_MS_MIN = 2_000
const RETRY_MS_MAX = 32_000
/** Maximum duration of one sleep, after which the clock is read again. */
const SLEEP_MS_MAX = 24 * 60 * 60 * 1_000

export const nodeKubeconfigPath = (root: string): string => join(root, 'kubeconfig')

/** Writes the credentials of a node that joins. Writes the kubeconfig last, because a node without one has not joined. */
export async function saveCredentials(
  root: string,
  { server, ca, nodeName }: { server: string; ca: string; nodeName: string },
  pair: KeyAndCertificate,
): Promise<void> {
  await writePair(root, pair)
  const user = `${NODE_PREFIX}${nodeName}`
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'stowage', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
    ],
    users: [{ name: user, user: { 'client-certificate': CERTIFICATE_FILE, 'client-key': CERTIFICATE_FILE } }],
    contexts: [{ name: 'stowage', context: { cluster: 'stowage', user } }],
    'current-context': 'stowage',
  }
  await writePrivateFile(nodeKubeconfigPath(root), `${JSON.stringify(config, null, 2)}\n`) // JSON is YAML
}

async function writePair(root: string, { cert, key }: KeyAndCertificate): Promise<void> {
  await ensurePrivateDirectory(join(root, 'pki'))
  await writePrivateFile(join(root, CERTIFICATE_FILE), cert + key)
}

/** Returns the credentials of an earlier join, or undefined if there are none. Throws if they are invalid or have expired. */
export async function loadCredentials(root: string, clock: Clock): Promise<NodeCredentials | undefined> {
  const path = nodeKubeconfigPath(root)
  if ((await readTextIfPresent(path)) === undefined) return undefined
  const connection = await kubeconfigConnection({ path, clock }).catch((error) => {
    throw new UsageError(
      `Cannot use the credentials in ${path}: ${(error as Error).message}. Remove the file to join again.`,
    )
  })
  const { cert = '', key = '' } = await connection.credentials()
  let currentPair = { cert, key }
  const certificate = parseCertificate(cert, path)
  const nodeName = nodeNameOf(certificate)
  if (clock.nowMs() > Date.parse(certificate.validTo)) {
    throw new UsageError(
      `The certificate of node "${nodeName}" expired at ${certificate.validTo}. Remove ${path} and join again with a new token.`,
    )
  }

  async function renew({ client, clock, random, log, signal }: RenewOptions): Promise<void> {
    const onWaiting = (request: string) =>
      log.warn(
        { nodeName, request },
        `waiting until an administrator approves the renewal of the certificate with: kubectl certificate approve ${request}`,
      )
    let renewalMs = renewalTimeOf(currentPair.cert, random)
    for (let retryMs = RETRY_MS_MIN; ; ) {
      await sleepUntil(renewalMs, clock, signal)
      try {
        const pair = await requestCertificate({ client, nodeName, clock, signal, onWaiting })
        await writePair(root, pair)
        currentPair = pair
        renewalMs = renewalTimeOf(pair.cert, random)
        retryMs = RETRY_MS_MIN
        log.info({ nodeName, expires: new X509Certificate(pair.cert).validTo }, 'renewed the certificate of the node')
      } catch (error) {
        if (signal.aborted) throw error
        log.warn({ nodeName, reason: (error as Error).message }, 'cannot renew the certificate of the node; retrying')
        await clock.sleep(retryMs, signal)
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX)
      }
    }
  }

  return { nodeName, connection: { ...connection, credentials: async () => currentPair }, renew }
}

function parseCertificate(pem: string, path: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new UsageError(`The client certificate of ${path} is missing or damaged. Remove ${path} and join again.`)
  }
}

const nodeNameOf = ({ subject }: X509Certificate): string => /^CN=system:node:(.*)$/m.exec(subject)?.[1] ?? ''

const renewalTimeOf = (pem: string, random: Random): number => {
  const { validFrom, validTo } = new X509Certificate(pem)
  const startMs = Date.parse(validFrom)
  return startMs + (Date.parse(validTo) - startMs) * (RENEWAL_START + RENEWAL_SPREAD * random())
}

async function sleepUntil(timeMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  while (clock.nowMs() < timeMs) await clock.sleep(Math.min(timeMs - clock.nowMs(), SLEEP_MS_MAX), signal)
}
