// Keeps the server's keys, certificates and tokens in one private directory. The first start creates them, and every start
// creates the files that are missing or must be renewed, so a crash between any two writes is repaired by the next start.
// certificate.ts issues a certificate; authenticate.ts maps certificates and tokens to users.
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import os from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import { issueCertificate, type SubjectName } from './certificate.ts'
import { unusableFile, unusableHost } from './errors.ts'
import { formatTokens, parseTokens, type TokenRecord } from './tokens.ts'
import { MASTERS_GROUP, VIEWERS_GROUP } from './user.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const CA_LIFETIME_MS = 10 * 365 * DAY_MS
const LEAF_LIFETIME_MS = 365 * DAY_MS
const LEAF_RENEWAL_MS = 30 * DAY_MS
const CA_RENEWAL_MS = LEAF_LIFETIME_MS + LEAF_RENEWAL_MS // no leaf outlives its CA
const BACKDATING_MS = 5 * 60 * 1_000 // for clients whose clock is slow

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
  /** Directory of all files; created if missing, and accessible only to the owner. */
  dir: string
  /** Hosts of the serving certificate, in addition to localhost, this machine's name and the in-cluster names. */
  hosts?: readonly string[]
  clock: Clock
  /** Default: the name of this machine. */
  hostname?: string
  /** For tokens and serial numbers. Default: the system's secure random bytes. */
  randomBytes?: (size: number) => Uint8Array
  /** Default: writePrivateFile. Tests simulate crashes with it. */
  writeFile?: (path: string, text: string) => Promise<void>
}

/** All certificates and keys are PEM. */
export interface Pki {
  caCert: string
  servingCert: string
  servingKey: string
  /** May do everything. */
  admin: ClientCredential
  /** May read everything but secrets. */
  viewer: ClientCredential
  tokens: readonly TokenRecord[]
  /** The files that this start has written, in order, for the log. */
  written: readonly { file: string; because: string }[]
}

export interface ClientCredential {
  user: string
  cert: string
  key: string
  /** Absent if it was removed from tokens.json. */
  token?: string
}

export async function loadOrCreatePki(options: PkiOptions): Promise<Pki> {
  const hosts = servingHosts(options)
  const files = openPkiFiles(options)
  await ensurePrivateDirectory(options.dir)

  const ca = await ensureCa(files)
  const serving = await ensureLeaf(files, ca, { name: 'serving', use: 'server', subject: SERVING, hosts })
  const admin = await ensureLeaf(files, ca, { name: 'admin', use: 'client', subject: ADMIN })
  const viewer = await ensureLeaf(files, ca, { name: 'viewer', use: 'client', subject: VIEWER })
  const tokens = await ensureTokens(files)

  const tokenOf = (user: string) => tokens.find((record) => record.user === user)?.token
  const credential = ({ commonName: user }: SubjectName, { cert, key }: PemPair) => ({
    user,
    cert,
    key,
    token: tokenOf(user),
  })
  return {
    caCert: ca.pem,
    servingCert: serving.cert,
    servingKey: serving.key,
    admin: credential(ADMIN, admin),
    viewer: credential(VIEWER, viewer),
    tokens,
    written: files.written,
  }
}

interface CertificateAuthority {
  key: KeyObject
  certificate: X509Certificate
  pem: string
}

/**
 * A CA that is about to expire gets a new certificate with the same key and name: certificates it has signed stay valid,
 * and clients with the old CA certificate trust the server until that one expires.
 */
async function ensureCa(files: PkiFiles): Promise<CertificateAuthority> {
  const remedy =
    `Restore it from a backup, or remove ${files.dir} and start again with a new CA; ` +
    'all existing kubeconfigs and tokens then stop working.'
  const certPem = await files.read('ca.crt')
  const keyPem = await files.read('ca.key')
  // The key is written first, so a certificate without a key is not an interrupted start: the key was removed.
  if (certPem !== undefined && keyPem === undefined)
    throw unusableFile({ file: files.path('ca.key'), why: 'it is missing, though ca.crt exists', remedy })

  const key = keyPem === undefined ? await createKey(files, 'ca.key') : parseKey(files.path('ca.key'), keyPem, remedy)
  if (certPem === undefined) return issueCa(files, key, 'it did not exist')

  const certificate = parseCertificate(files.path('ca.crt'), certPem, remedy)
  if (!certificate.checkPrivateKey(key))
    throw unusableFile({ file: files.path('ca.crt'), why: 'it does not belong to the key in ca.key', remedy })
  const because = whyRenew(certificate, { nowMs: files.nowMs, renewalMs: CA_RENEWAL_MS })
  return because ? issueCa(files, key, because) : { key, certificate, pem: certPem }
}

async function issueCa(files: PkiFiles, key: KeyObject, because: string): Promise<CertificateAuthority> {
  const pem = files.issue({ subject: CA, issuer: CA, key, issuerKey: key, use: 'ca', lifetimeMs: CA_LIFETIME_MS })
  await files.write('ca.crt', pem, because)
  return { key, certificate: new X509Certificate(pem), pem }
}

interface LeafSpec {
  /** The files are `<name>.key` and `<name>.crt`. */
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

  const because = certificate ? whyReissue(certificate, { key, ca, spec, nowMs: files.nowMs }) : 'it did not exist'
  if (!because) return { cert: certPem!, key: toPem(key) }

  const { subject, use, hosts } = spec
  const lifetimeMs = LEAF_LIFETIME_MS
  const cert = files.issue({ subject, issuer: CA, key, issuerKey: ca.key, use, hosts, lifetimeMs })
  await files.write(certFile, cert, because)
  return { cert, key: toPem(key) }
}

function whyReissue(
  certificate: X509Certificate,
  { key, ca, spec, nowMs }: { key: KeyObject; ca: CertificateAuthority; spec: LeafSpec; nowMs: number },
): string | undefined {
  if (!certificate.checkPrivateKey(key)) return 'it did not belong to its key'
  if (!certificate.checkIssued(ca.certificate) || !certificate.verify(ca.certificate.publicKey))
    return 'it was issued by another CA'
  if (certificate.subject !== subjectText(spec.subject)) return 'it had another subject'
  const missing = spec.hosts?.find((host) => !(isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)))
  if (missing) return `it did not include the host ${missing}`
  return whyRenew(certificate, { nowMs, renewalMs: LEAF_RENEWAL_MS })
}

/** Not yet valid counts too: a machine that boots with a wrong clock issues such certificates. */
function whyRenew(certificate: X509Certificate, { nowMs, renewalMs }: { nowMs: number; renewalMs: number }) {
  if (nowMs < Date.parse(certificate.validFrom)) return `it was not valid before ${certificate.validFrom}`
  if (Date.parse(certificate.validTo) - nowMs < renewalMs) return `it expires at ${certificate.validTo}`
  return undefined
}

/** In the format of X509Certificate.subject: one entry per line. */
const subjectText = ({ commonName, organizations = [] }: SubjectName) =>
  [...organizations.map((organization) => `O=${organization}`), `CN=${commonName}`].join('\n')

async function ensureTokens(files: PkiFiles): Promise<TokenRecord[]> {
  const text = await files.read('tokens.json')
  if (text !== undefined) return parseTokens(text, files.path('tokens.json'))

  const tokens = [ADMIN, VIEWER].map(({ commonName, organizations }) => ({
    token: Buffer.from(files.randomBytes(32)).toString('base64url'),
    user: commonName,
    groups: organizations,
  }))
  await files.write('tokens.json', formatTokens(tokens), 'it did not exist')
  return tokens
}

/** In lower case, without duplicates. The name of the machine is omitted if it is not a valid DNS name. */
function servingHosts({ hosts = [], hostname = os.hostname() }: PkiOptions): string[] {
  const unusable = hosts.find((host) => !isHost(host))
  if (unusable !== undefined) throw unusableHost(unusable)
  const all = [...STANDARD_HOSTS, ...(isHost(hostname) ? [hostname] : []), ...hosts]
  return [...new Set(all.map((host) => host.toLowerCase()))]
}

const DNS_LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const DNS_NAME = new RegExp(`^${DNS_LABEL}(\\.${DNS_LABEL})*$`, 'i')
const isHost = (host: string) => (isIP(host) ? !host.includes('%') : host.length <= 253 && DNS_NAME.test(host))

/** The directory, time and randomness of one start, and a record of the files it has written. */
type PkiFiles = ReturnType<typeof openPkiFiles>

function openPkiFiles({ dir, clock, randomBytes: bytes = randomBytes, writeFile = writePrivateFile }: PkiOptions) {
  const nowMs = clock.nowMs()
  const written: { file: string; because: string }[] = []
  const path = (file: string) => join(dir, file)
  type IssueRequest = Omit<Parameters<typeof issueCertificate>[0], 'serialNumber' | 'notBeforeMs' | 'notAfterMs'>
  return {
    dir,
    nowMs,
    written,
    path,
    randomBytes: bytes,
    read: (file: string) => readTextIfPresent(path(file)),
    async write(file: string, text: string, because: string) {
      await writeFile(path(file), text)
      written.push({ file, because })
    },
    issue: ({ lifetimeMs, ...request }: IssueRequest & { lifetimeMs: number }) =>
      issueCertificate({
        ...request,
        serialNumber: bytes(16),
        notBeforeMs: nowMs - BACKDATING_MS,
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
    throw unusableFile({ file, why: 'it is not a private key in PEM', remedy })
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw unusableFile({ file, why: 'its key is not an ECDSA P-256 key', remedy })
  return key
}

function parseCertificate(file: string, pem: string, remedy: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw unusableFile({ file, why: 'it is not a certificate in PEM', remedy })
  }
}
