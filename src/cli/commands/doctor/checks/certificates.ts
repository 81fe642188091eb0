// Checks when the certificate of the API server, its CA, and the credentials of the kubeconfig expire.
import { X509Certificate } from 'node:crypto'
import { timestamp } from '../../../../base/timestamps.ts'
import type { Connection, Credentials } from '../../../../client/connection/connection.ts'
import type { Check, Finding } from '../check.ts'
import { readServerCertificate } from '../probe-server.ts'

const DAY_MS = 86_400_000
/** A certificate expires soon if less than this time, and less than this part of its lifetime, is left. */
const SOON_MS_MAX = 14 * DAY_MS
const SOON_PART_MAX = 0.2

interface Credential {
  readonly name: string
  readonly expiresMs: number
  /**
   * The time at which it was issued. Absent for tokens: they are reported only once they have expired, because a token from a
   * file or an exec plugin is normally refreshed shortly before.
   */
  readonly issuedMs?: number
  readonly remedy: string
}

export const certificates: Check = {
  id: 'certificates',
  title: 'Certificates',
  async run({ connection, clock }) {
    const credentials = await collectCredentials(connection)
    const findings = credentials.known.flatMap((credential) => describeExpiry(credential, clock.nowMs()))
    const [firstCredential] = [...credentials.known].sort((a, b) => a.expiresMs - b.expiresMs)
    const okFindings: Finding[] =
      firstCredential && findings.length === 0
        ? [
            {
              status: 'ok',
              message: `${firstCredential.name} expires first, at ${timestamp(firstCredential.expiresMs)}.`,
            },
          ]
        : []
    return [...findings, ...okFindings, ...credentials.unknown]
  },
}

async function collectCredentials(
  connection: Connection,
): Promise<{ readonly known: readonly Credential[]; readonly unknown: readonly Finding[] }> {
  const serverCertificate = await readServerCertificate(connection)
  const unknownFindings: Finding[] = []
  const { cert, token } = await connection.credentials().catch((error: Error): Credentials => {
    unknownFindings.push({
      status: 'unknown',
      message: `The credentials of the kubeconfig cannot be read: ${error.message}`,
    })
    return {}
  })
  const knownCredentials = [
    ...(serverCertificate
      ? [credentialOfCertificate('The certificate of the API server', serverCertificate, SERVER_CERTIFICATE_REMEDY)]
      : []),
    ...readPem(connection.ca).map((ca) =>
      credentialOfCertificate(`The CA ${ca.subject.replaceAll('\n', ', ')}`, ca, CA_REMEDY),
    ),
    ...readPem(cert)
      .slice(0, 1)
      .map((client) => credentialOfCertificate('The client certificate', client, CLIENT_CREDENTIALS_REMEDY)),
    ...(token === undefined ? [] : credentialsOfToken(token)),
  ]
  return { known: knownCredentials, unknown: unknownFindings }
}

const SERVER_CERTIFICATE_REMEDY =
  'Renew the certificate of the API server (kubeadm certs renew apiserver) and restart it; a Stowage server renews its own before it expires.'
const CA_REMEDY = 'Renew the CA of the cluster, and distribute it with new kubeconfigs.'
const CLIENT_CREDENTIALS_REMEDY =
  'Get a new kubeconfig from the administrator; on the machine of a Stowage server: stowage kubeconfig'

const credentialOfCertificate = (
  name: string,
  { validFrom, validTo }: X509Certificate,
  remedy: string,
): Credential => ({
  name,
  issuedMs: Date.parse(validFrom),
  expiresMs: Date.parse(validTo),
  remedy,
})

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Omits certificates that cannot be parsed: no connection can be made with them. */
const readPem = (text = ''): X509Certificate[] =>
  [...text.matchAll(PEM)].flatMap(([pem]) => {
    try {
      return [new X509Certificate(pem)]
    } catch {
      return []
    }
  })

/** Returns the expiration of a JSON Web Token. Other tokens do not contain one. */
function credentialsOfToken(token: string): Credential[] {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { exp } = claims as { readonly exp?: number }
    return typeof exp === 'number'
      ? [{ name: 'The token', expiresMs: exp * 1_000, remedy: CLIENT_CREDENTIALS_REMEDY }]
      : []
  } catch {
    return []
  }
}

function describeExpiry({ name, expiresMs, issuedMs, remedy }: Credential, nowMs: number): Finding[] {
  const leftMs = expiresMs - nowMs
  if (leftMs <= 0) return [{ status: 'error', message: `${name} expired at ${timestamp(expiresMs)}.`, remedy }]
  const soonMs = issuedMs === undefined ? 0 : Math.min(SOON_MS_MAX, (expiresMs - issuedMs) * SOON_PART_MAX)
  return leftMs < soonMs
    ? [{ status: 'warning', message: `${name} expires soon, at ${timestamp(expiresMs)}.`, remedy }]
    : []
}
