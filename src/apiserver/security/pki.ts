// Keeps the server's keys, certificates and tokens in one private directory, made at the first start and reused after.
// Every start completes what is missing, so a crash between any two writes is healed by the next; call it again to renew.
// How a certificate is put together is certificate.ts; who a certificate or token speaks for is authenticate.ts.
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
const CA_RENEWAL_MS = LEAF_LIFETIME_MS + LEAF_RENEWAL_MS // so that no leaf outlives its CA
const BACKDATING_MS = 5 * 60 * 1_000 // for clients whose clock is a little behind

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
  /** The directory to keep everything in; made if missing, and closed to others. */
  dir: string
  /** Names and addresses to serve under, beside localhost, this machine's name and the in-cluster names. */
  hosts?: readonly string[]
  clock: Clock
  /** This machine's name. Default: ask the system. */
  hostname?: string
  /** Unpredictable bytes for tokens and serial numbers. Default: the system's. */
  randomBytes?: (size: number) => Uint8Array
  /** Default: writePrivateFile. Tests make it crash. */
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
  /** What this start had to write, in order, for the log; empty when everything was there. */
  written: readonly { file: string; because: string }[]
}

export interface ClientCredential {
  /** The user it speaks for. */
  user: string
  cert: string
  key: string
  /** Absent when it was taken out of tokens.json. */
  token?: string
}

export async function loadOrCreatePki(options: PkiOptions): Promise<Pki> {
  const hosts = wantedHosts(options)
  const desk = openDesk(options)
  await ensurePrivateDirectory(options.dir)

  const ca = await ensureCa(desk)
  const serving = await ensureLeaf(desk, ca, { name: 'serving', use: 'server', subject: SERVING, hosts })
  const admin = await ensureLeaf(desk, ca, { name: 'admin', use: 'client', subject: ADMIN })
  const viewer = await ensureLeaf(desk, ca, { name: 'viewer', use: 'client', subject: VIEWER })
  const tokens = await ensureTokens(desk)

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
    written: desk.written,
  }
}

interface CertificateAuthority {
  key: KeyObject
  certificate: X509Certificate
  pem: string
}

/**
 * A CA near its end gets a new certificate for the same key and name: what it signed stays good, and clients
 * that hold the old certificate keep trusting the server until that one runs out.
 */
async function ensureCa(desk: Desk): Promise<CertificateAuthority> {
  const remedy =
    `Restore it from a backup, or remove ${desk.dir} and start again with a new CA; ` +
    'every kubeconfig and token made so far then stops working.'
  const certPem = await desk.read('ca.crt')
  const keyPem = await desk.read('ca.key')
  // The key is written first, so a certificate alone is no interrupted start: somebody took the key away.
  if (certPem !== undefined && keyPem === undefined)
    throw unusableFile({ file: desk.path('ca.key'), why: 'it is missing, though ca.crt exists', remedy })

  const key = keyPem === undefined ? await makeKey(desk, 'ca.key') : parseKey(desk.path('ca.key'), keyPem, remedy)
  if (certPem === undefined) return issueCa(desk, key, 'there was none')

  const certificate = parseCertificate(desk.path('ca.crt'), certPem, remedy)
  if (!certificate.checkPrivateKey(key))
    throw unusableFile({ file: desk.path('ca.crt'), why: 'it does not belong to the key in ca.key', remedy })
  const because = whyRenew(certificate, { nowMs: desk.nowMs, renewalMs: CA_RENEWAL_MS })
  return because ? issueCa(desk, key, because) : { key, certificate, pem: certPem }
}

async function issueCa(desk: Desk, key: KeyObject, because: string): Promise<CertificateAuthority> {
  const pem = desk.issue({ subject: CA, issuer: CA, key, issuerKey: key, use: 'ca', lifetimeMs: CA_LIFETIME_MS })
  await desk.write('ca.crt', pem, because)
  return { key, certificate: new X509Certificate(pem), pem }
}

interface LeafWish {
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

async function ensureLeaf(desk: Desk, ca: CertificateAuthority, wish: LeafWish): Promise<PemPair> {
  const remedy = 'Remove it and start again: the same CA will issue a new one.'
  const [keyFile, certFile] = [`${wish.name}.key`, `${wish.name}.crt`]
  const certPem = await desk.read(certFile)
  const keyPem = await desk.read(keyFile)
  const certificate = certPem === undefined ? undefined : parseCertificate(desk.path(certFile), certPem, remedy)
  const key = keyPem === undefined ? await makeKey(desk, keyFile) : parseKey(desk.path(keyFile), keyPem, remedy)

  const because = certificate ? whyReissue(certificate, { key, ca, wish, nowMs: desk.nowMs }) : 'there was none'
  if (!because) return { cert: certPem!, key: toPem(key) }

  const { subject, use, hosts } = wish
  const lifetimeMs = LEAF_LIFETIME_MS
  const cert = desk.issue({ subject, issuer: CA, key, issuerKey: ca.key, use, hosts, lifetimeMs })
  await desk.write(certFile, cert, because)
  return { cert, key: toPem(key) }
}

function whyReissue(
  certificate: X509Certificate,
  { key, ca, wish, nowMs }: { key: KeyObject; ca: CertificateAuthority; wish: LeafWish; nowMs: number },
): string | undefined {
  if (!certificate.checkPrivateKey(key)) return 'it did not belong to its key'
  if (!certificate.checkIssued(ca.certificate) || !certificate.verify(ca.certificate.publicKey))
    return 'another CA had issued it'
  if (certificate.subject !== subjectText(wish.subject)) return 'it named someone else'
  const missing = wish.hosts?.find((host) => !(isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)))
  if (missing) return `it did not name the host ${missing}`
  return whyRenew(certificate, { nowMs, renewalMs: LEAF_RENEWAL_MS })
}

/** A certificate from the future is as useless as an expired one; a machine that boots without the time makes both. */
function whyRenew(certificate: X509Certificate, { nowMs, renewalMs }: { nowMs: number; renewalMs: number }) {
  if (nowMs < Date.parse(certificate.validFrom)) return `it was not valid before ${certificate.validFrom}`
  if (Date.parse(certificate.validTo) - nowMs < renewalMs) return `it was valid only until ${certificate.validTo}`
  return undefined
}

/** As node prints a subject: one entry a line. */
const subjectText = ({ commonName, organizations = [] }: SubjectName) =>
  [...organizations.map((organization) => `O=${organization}`), `CN=${commonName}`].join('\n')

async function ensureTokens(desk: Desk): Promise<TokenRecord[]> {
  const text = await desk.read('tokens.json')
  if (text !== undefined) return parseTokens(text, desk.path('tokens.json'))

  const tokens = [ADMIN, VIEWER].map(({ commonName, organizations }) => ({
    token: Buffer.from(desk.randomBytes(32)).toString('base64url'),
    user: commonName,
    groups: organizations,
  }))
  await desk.write('tokens.json', formatTokens(tokens), 'there was none')
  return tokens
}

/** In lower case, each once. The machine's own name is left out when no certificate could carry it. */
function wantedHosts({ hosts = [], hostname = os.hostname() }: PkiOptions): string[] {
  const unusable = hosts.find((host) => !isHost(host))
  if (unusable !== undefined) throw unusableHost(unusable)
  const all = [...STANDARD_HOSTS, ...(isHost(hostname) ? [hostname] : []), ...hosts]
  return [...new Set(all.map((host) => host.toLowerCase()))]
}

const DNS_LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const DNS_NAME = new RegExp(`^${DNS_LABEL}(\\.${DNS_LABEL})*$`, 'i')
const isHost = (host: string) => (isIP(host) ? !host.includes('%') : host.length <= 253 && DNS_NAME.test(host))

/** The directory, the time and the dice of one start, and a list of what it wrote. */
type Desk = ReturnType<typeof openDesk>

function openDesk({ dir, clock, randomBytes: bytes = randomBytes, writeFile = writePrivateFile }: PkiOptions) {
  const nowMs = clock.nowMs()
  const written: { file: string; because: string }[] = []
  const path = (file: string) => join(dir, file)
  type Order = Omit<Parameters<typeof issueCertificate>[0], 'serialNumber' | 'notBeforeMs' | 'notAfterMs'>
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
    issue: ({ lifetimeMs, ...order }: Order & { lifetimeMs: number }) =>
      issueCertificate({
        ...order,
        serialNumber: bytes(16),
        notBeforeMs: nowMs - BACKDATING_MS,
        notAfterMs: nowMs + lifetimeMs,
      }),
  }
}

async function makeKey(desk: Desk, file: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await desk.write(file, toPem(privateKey), 'there was none')
  return privateKey
}

const toPem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }) as string

function parseKey(file: string, pem: string, remedy: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    throw unusableFile({ file, why: 'it does not hold a private key in PEM', remedy })
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw unusableFile({ file, why: 'its key is not an ECDSA P-256 key', remedy })
  return key
}

function parseCertificate(file: string, pem: string, remedy: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw unusableFile({ file, why: 'it does not hold a certificate in PEM', remedy })
  }
}
