// Manages the server's keys, certificates and tokens in a directory that only the owner can access. A start creates
// missing files, for example after an interrupted start, and renews certificates that expire soon.
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { isIP } from 'node:net'
import os from 'node:os'
import { join } from 'node:path'
import type { SubjectName } from '../../api/distinguished-name.ts'
import type { Clock } from '../../base/clock.ts'
import { ensurePrivateDirectory, readTextIfPresent, restrictFile, writePrivateFile } from '../../base/files.ts'
import { issueCertificate } from './certificate.ts'
import { invalidHostError, unusableFileError } from './errors.ts'
import { formatTokens, parseTokens, type TokenRecord } from './tokens.ts'
import { MASTERS_GROUP, VIEWERS_GROUP } from './user.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const CA_LIFETIME_MS = 10 * 365 * DAY_MS
const LEAF_LIFETIME_MS = 365 * DAY_MS
const LEAF_RENEWAL_BEFORE_MS = 30 * DAY_MS
const CA_RENEWAL_BEFORE_MS = LEAF_LIFETIME_MS + LEAF_RENEWAL_BEFORE_MS // so that no certificate outlives its CA
const BACKDATE_MS = 5 * 60 * 1_000 // for clients whose clock is slow

const CA: SubjectName = { commonName: 'stowage-ca' }
const SERVING: SubjectName = { commonName: 'stowage' }
const ADMIN = { commonName: 'stowage-admin', organizations: [MASTERS_GROUP] }
const VIEWER = { commonName: 'stowage-viewer', organizations: [VIEWERS_GROUP] }
const STANDARD_HOSTS = [
  'localhost',
  '127.0.0.1',
  '::1',
  'stowage',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
]

export interface PkiOptions {
  /** The directory of all files; created if missing, and accessible only to the owner. */
  dir: string
  /** Hosts of the serving certificate, in addition to localhost, `hostname` and the in-cluster names. */
  hosts?: readonly string[]
  clock: Clock
  /** Default: the hostname that the operating system reports. */
  hostname?: string
  /** Source of tokens and serial numbers. Default: the secure random bytes of the system. */
  randomBytes?: (size: number) => Uint8Array
  /** Default: writePrivateFile. Tests replace it to simulate crashes. */
  writeFile?: (path: string, content: string) => Promise<void>
}

/** All certificates and keys are PEM. */
export interface Pki {
  caCert: string
  servingCert: string
  servingKey: string
  /** Credential with all permissions. */
  admin: ClientCredential
  /** Credential with permission to read all resources except secrets. */
  viewer: ClientCredential
  tokens: readonly TokenRecord[]
  /** Signs a certificate with the key of the CA. Returns PEM. */
  signCertificate(request: SigningRequest): string
  /** The files that this start has written, in order, for the log. */
  writtenFiles: readonly { file: string; reason: string }[]
}

export interface SigningRequest {
  readonly use: 'server' | 'client'
  /** The encoded subject. */
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
  /** Subject alternative names in DER. */
  readonly alternativeNames: readonly Uint8Array[]
  readonly canEncipherKeys: boolean
  readonly notBeforeMs: number
  /** The certificate never outlives the CA. */
  readonly notAfterMs: number
}

interface ClientCredential {
  user: string
  cert: string
  key: string
  /** Absent if the token was removed from tokens.json. */
  token?: string
}

export async function loadOrCreatePki(options: PkiOptions): Promise<Pki> {
  const hosts = servingHosts(options)
  const files = openPkiFiles(options)
  await ensurePrivateDirectory(options.dir)
  for (const name of await readdir(options.dir)) if (isPrivateFile(name)) await restrictFile(join(options.dir, name))

  const ca = await ensureCa(files)
  const servingLeaf = await ensureLeaf(files, ca, { name: 'serving', use: 'server', subject: SERVING, hosts })
  const admin = await ensureLeaf(files, ca, { name: 'admin', use: 'client', subject: ADMIN })
  const viewer = await ensureLeaf(files, ca, { name: 'viewer', use: 'client', subject: VIEWER })
  const tokens = await ensureTokens(files)

  const tokenOf = (user: string) => tokens.find((record) => record.user === user)?.token
  const credentialOf = ({ commonName: user }: SubjectName, { cert, key }: PemPair) => ({
    user,
    cert,
    key,
    token: tokenOf(user),
  })
  return {
    caCert: ca.pem,
    servingCert: servingLeaf.cert,
    servingKey: servingLeaf.key,
    admin: credentialOf(ADMIN, admin),
    viewer: credentialOf(VIEWER, viewer),
    tokens,
    signCertificate: ({ publicKey, notAfterMs, ...request }) =>
      issueCertificate({
        ...request,
        issuer: CA,
        key: publicKey,
        issuerKey: ca.key,
        serialNumber: files.randomBytes(16),
        notAfterMs: Math.min(notAfterMs, Date.parse(ca.certificate.validTo)),
      }),
    writtenFiles: files.writtenFiles,
  }
}

const isPrivateFile = (name: string): boolean => name.endsWith('.key') || name === 'tokens.json'

interface CertificateAuthority {
  key: KeyObject
  certificate: X509Certificate
  pem: string
}

/**
 * Loads, creates or renews the CA. A renewed CA has the same key and name, so the certificates that it has issued stay
 * valid, and clients trust the server until their copy of the old CA certificate expires.
 */
async function ensureCa(files: PkiFiles): Promise<CertificateAuthority> {
  const remedy =
    `Restore it from a backup, or remove ${files.dir} and start again with a new CA; ` +
    'all existing kubeconfigs and tokens then stop working.'
  const certPem = await files.read('ca.crt')
  const keyPem = await files.read('ca.key')
  // The key is written before the certificate, so a missing key is not the result of an interrupted start.
  if (certPem !== undefined && keyPem === undefined)
    throw unusableFileError({ file: files.path('ca.key'), reason: 'it is missing, though ca.crt exists', remedy })

  const key = keyPem === undefined ? await createKey(files, 'ca.key') : parseKey(files.path('ca.key'), keyPem, remedy)
  if (certPem === undefined) return issueCa(files, key, 'it did not exist')

  const certificate = parseCertificate(files.path('ca.crt'), certPem, remedy)
  if (!certificate.checkPrivateKey(key))
    throw unusableFileError({ file: files.path('ca.crt'), reason: 'it does not belong to the key in ca.key', remedy })
  const reason = renewalReason(certificate, { nowMs: files.nowMs, renewalMs: CA_RENEWAL_BEFORE_MS })
  return reason ? issueCa(files, key, reason) : { key, certificate, pem: certPem }
}

async function issueCa(files: PkiFiles, key: KeyObject, reason: string): Promise<CertificateAuthority> {
  const pem = files.issue({ subject: CA, issuer: CA, key, issuerKey: key, use: 'ca', lifetimeMs: CA_LIFETIME_MS })
  await files.write('ca.crt', pem, reason)
  return { key, certificate: new X509Certificate(pem), pem }
}

interface LeafSpec {
  /** The name of the files without `.key` and `.crt`. */
  name: string
  use: 'server' | 'client'
  subject: SubjectName
  hosts?: readonly string[]
}

interface PemPair {
  cert: string
  key: string
}

async function ensureLeaf(files: PkiFiles, ca: CertificateAuthority, spec: LeafSpec): Promise<PemPair> {
  const remedy = 'Remove it and start again: the same CA will issue a new one.'
  const [keyFile, certFile] = [`${spec.name}.key`, `${spec.name}.crt`]
  const certPem = await files.read(certFile)
  const keyPem = await files.read(keyFile)
  const certificate = certPem === undefined ? undefined : parseCertificate(files.path(certFile), certPem, remedy)
  const key = keyPem === undefined ? await createKey(files, keyFile) : parseKey(files.path(keyFile), keyPem, remedy)

  const reason = certificate ? reissueReason(certificate, { key, ca, spec, nowMs: files.nowMs }) : 'it did not exist'
  if (!reason) return { cert: certPem!, key: toPem(key) }

  const { subject, use, hosts } = spec
  const lifetimeMs = LEAF_LIFETIME_MS
  const cert = files.issue({ subject, issuer: CA, key, issuerKey: ca.key, use, hosts, lifetimeMs })
  await files.write(certFile, cert, reason)
  return { cert, key: toPem(key) }
}

function reissueReason(
  certificate: X509Certificate,
  { key, ca, spec, nowMs }: { key: KeyObject; ca: CertificateAuthority; spec: LeafSpec; nowMs: number },
): string | undefined {
  if (!certificate.checkPrivateKey(key)) return 'it did not belong to its key'
  if (!certificate.checkIssued(ca.certificate) || !certificate.verify(ca.certificate.publicKey))
    return 'it was issued by another CA'
  if (certificate.subject !== subjectText(spec.subject)) return 'it had another subject'
  const missingHost = spec.hosts?.find(
    (host) => !(isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)),
  )
  if (missingHost) return `it did not include the host ${missingHost}`
  return renewalReason(certificate, { nowMs, renewalMs: LEAF_RENEWAL_BEFORE_MS })
}

/** Also returns a reason for a certificate that is not yet valid, which a server with a wrong clock may have issued. */
function renewalReason(certificate: X509Certificate, { nowMs, renewalMs }: { nowMs: number; renewalMs: number }) {
  if (nowMs < Date.parse(certificate.validFrom)) return `it was not valid before ${certificate.validFrom}`
  if (Date.parse(certificate.validTo) - nowMs < renewalMs) return `it expires at ${certificate.validTo}`
  return undefined
}

/** Formats a subject like X509Certificate.subject, with one entry per line. */
const subjectText = ({ commonName, organizations = [] }: SubjectName) =>
  [...organizations.map((organization) => `O=${organization}`), `CN=${commonName}`].join('\n')

async function ensureTokens(files: PkiFiles): Promise<TokenRecord[]> {
  const content = await files.read('tokens.json')
  if (content !== undefined) return parseTokens(content, files.path('tokens.json'))

  const tokens = [ADMIN, VIEWER].map(({ commonName, organizations }) => ({
    token: Buffer.from(files.randomBytes(32)).toString('base64url'),
    user: commonName,
    groups: organizations,
  }))
  await files.write('tokens.json', formatTokens(tokens), 'it did not exist')
  return tokens
}

/** Returns the hosts in lower case, without duplicates. Omits a `hostname` that is not a DNS name. */
function servingHosts({ hosts = [], hostname = os.hostname() }: PkiOptions): string[] {
  const invalidHost = hosts.find((host) => !isHost(host))
  if (invalidHost !== undefined) throw invalidHostError(invalidHost)
  const allHosts = [...STANDARD_HOSTS, ...(isHost(hostname) ? [hostname] : []), ...hosts]
  return [...new Set(allHosts.map((host) => host.toLowerCase()))]
}

const DNS_LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const DNS_NAME = new RegExp(`^${DNS_LABEL}(\\.${DNS_LABEL})*$`, 'i')
const isHost = (host: string) => (isIP(host) ? !host.includes('%') : host.length <= 253 && DNS_NAME.test(host))

/** The directory, time and randomness of a start, and a list of the files that it has written. */
type PkiFiles = ReturnType<typeof openPkiFiles>

function openPkiFiles({
  dir,
  clock,
  randomBytes: createRandomBytes = randomBytes,
  writeFile = writePrivateFile,
}: PkiOptions) {
  const nowMs = clock.nowMs()
  const writtenFiles: { file: string; reason: string }[] = []
  const path = (file: string) => join(dir, file)
  type IssueRequest = Omit<Parameters<typeof issueCertificate>[0], 'serialNumber' | 'notBeforeMs' | 'notAfterMs'>
  return {
    dir,
    nowMs,
    writtenFiles,
    path,
    randomBytes: createRandomBytes,
    read: (file: string) => readTextIfPresent(path(file)),
    async write(file: string, content: string, reason: string) {
      await writeFile(path(file), content)
      writtenFiles.push({ file, reason })
    },
    issue: ({ lifetimeMs, ...request }: IssueRequest & { lifetimeMs: number }) =>
      issueCertificate({
        ...request,
        serialNumber: createRandomBytes(16),
        notBeforeMs: nowMs - BACKDATE_MS,
        notAfterMs: nowMs + lifetimeMs,
      }),
  }
}

async function createKey(files: PkiFiles, file: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await files.write(file, toPem(privateKey), 'it did not exist')
  return privateKey
}

const toPem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }) as string

function parseKey(file: string, pem: string, remedy: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    throw unusableFileError({ file, reason: 'it is not a private key in PEM', remedy })
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw unusableFileError({ file, reason: 'its key is not an ECDSA P-256 key', remedy })
  return key
}

function parseCertificate(file: string, pem: string, remedy: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw unusableFileError({ file, reason: 'it is not a certificate in PEM', remedy })
  }
}
