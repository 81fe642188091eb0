// Issues an X.509 certificate: names, keys and times in, PEM out; always ECDSA P-256. Pure, except for the randomness of
// the signature. pki.ts decides which certificates exist and when they are renewed.
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import * as der from './der.ts'

export interface SubjectName {
  commonName: string
  /** Each becomes an O entry, and so a group. */
  organizations?: readonly string[]
  uid?: string
}

/** The subject attribute in which Kubernetes carries a user's uid. */
export const UID_ATTRIBUTE = '1.3.6.1.4.1.57683.2'

export interface CertificateRequest {
  subject: SubjectName
  issuer: SubjectName
  /** The key to certify; the certificate contains only its public half. */
  key: KeyObject
  /** The issuer's private key: the same as `key` for a self-signed CA. */
  issuerKey: KeyObject
  use: 'ca' | 'server' | 'client'
  /** DNS names and IP addresses of a server. */
  hosts?: readonly string[]
  /** Unpredictable and at most 20 bytes. */
  serialNumber: Uint8Array
  notBeforeMs: number
  notAfterMs: number
}

export function issueCertificate(request: CertificateRequest): string {
  const body = der.sequence(
    der.explicit(0, der.integer(Uint8Array.of(2))), // version 3
    der.integer(request.serialNumber),
    ECDSA_WITH_SHA256,
    name(request.issuer),
    der.sequence(der.time(request.notBeforeMs), der.time(request.notAfterMs)),
    name(request.subject),
    publicKeyInfo(request.key),
    der.explicit(3, der.sequence(...extensions(request))),
  )
  const signature = sign('sha256', body, request.issuerKey)
  return pem(der.sequence(body, ECDSA_WITH_SHA256, der.bitString(signature)))
}

const ECDSA_WITH_SHA256 = der.sequence(der.objectId('1.2.840.10045.4.3.2'))
const SERVER_AUTH = der.objectId('1.3.6.1.5.5.7.3.1')
const CLIENT_AUTH = der.objectId('1.3.6.1.5.5.7.3.2')
const SIGN_CERTIFICATES_AND_REVOCATIONS = der.bitString(Uint8Array.of(0b0000_0110), 1)
const SIGN_HANDSHAKES = der.bitString(Uint8Array.of(0b1000_0000), 7)

function extensions({ use, key, issuerKey, hosts = [] }: CertificateRequest): Uint8Array[] {
  const isCa = use === 'ca'
  const all = [
    critical('2.5.29.15', isCa ? SIGN_CERTIFICATES_AND_REVOCATIONS : SIGN_HANDSHAKES), // key usage
    critical('2.5.29.19', isCa ? der.sequence(der.TRUE) : der.sequence()), // basic constraints: a CA, or not
    extension('2.5.29.14', der.octetString(keyId(key))), // subject key identifier
    extension('2.5.29.35', der.sequence(der.implicit(0, keyId(issuerKey)))), // authority key identifier
  ]
  if (!isCa) all.push(extension('2.5.29.37', der.sequence(use === 'server' ? SERVER_AUTH : CLIENT_AUTH)))
  if (hosts.length > 0) all.push(extension('2.5.29.17', der.sequence(...hosts.map(alternativeName))))
  return all
}

const extension = (id: string, value: Uint8Array) => der.sequence(der.objectId(id), der.octetString(value))
const critical = (id: string, value: Uint8Array) => der.sequence(der.objectId(id), der.TRUE, der.octetString(value))

const alternativeName = (host: string) =>
  isIP(host) ? der.implicit(7, der.ipAddressBytes(host)) : der.implicit(2, Buffer.from(host, 'ascii'))

const name = ({ commonName, organizations = [], uid }: SubjectName) =>
  der.sequence(
    ...organizations.map((organization) => nameEntry('2.5.4.10', organization)),
    nameEntry('2.5.4.3', commonName),
    ...(uid ? [nameEntry(UID_ATTRIBUTE, uid)] : []),
  )

const nameEntry = (id: string, value: string) => der.set(der.sequence(der.objectId(id), der.utf8String(value)))

const publicKeyInfo = (key: KeyObject) =>
  (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' })

/** The 20-byte identifier of a key: a hash of its P-256 point, the last 65 bytes of its public key info. */
const keyId = (key: KeyObject) => createHash('sha256').update(publicKeyInfo(key).subarray(-65)).digest().subarray(0, 20)

function pem(bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
