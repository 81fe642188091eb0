// Issues X.509 certificates in PEM, signed with an ECDSA P-256 key.
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { encodeName, type SubjectName } from '../../api/distinguished-name.ts'
import * as der from '../../base/der/der.ts'

export interface CertificateRequest {
  /** A name, or its DER encoding. */
  subject: SubjectName | Uint8Array
  issuer: SubjectName
  /** The key to certify; the certificate contains only the public key. */
  key: KeyObject
  /** The private key of the issuer, which is `key` for a self-signed CA. */
  issuerKey: KeyObject
  use: 'ca' | 'server' | 'client'
  /** Whether the key may also encipher other keys, as clients with an RSA key request. Default: signatures only. */
  canEncipherKeys?: boolean
  /** DNS names and IP addresses of a server. */
  hosts?: readonly string[]
  /** Further alternative names in DER. */
  alternativeNames?: readonly Uint8Array[]
  /** Random bytes, at most 20. */
  serialNumber: Uint8Array
  notBeforeMs: number
  notAfterMs: number
}

export function issueCertificate(request: CertificateRequest): string {
  const tbsCertificate = der.sequence(
    der.explicit(0, der.integer(Uint8Array.of(2))), // version 3
    der.integer(request.serialNumber),
    ECDSA_WITH_SHA256,
    encodeName(request.issuer),
    der.sequence(der.time(request.notBeforeMs), der.time(request.notAfterMs)),
    request.subject instanceof Uint8Array ? request.subject : encodeName(request.subject),
    encodePublicKey(request.key),
    der.explicit(3, der.sequence(...encodeExtensions(request))),
  )
  const signature = sign('sha256', tbsCertificate, request.issuerKey)
  return encodePem(der.sequence(tbsCertificate, ECDSA_WITH_SHA256, der.bitString(signature)))
}

const ECDSA_WITH_SHA256 = der.sequence(der.objectId('1.2.840.10045.4.3.2'))
const SERVER_AUTH = der.objectId('1.3.6.1.5.5.7.3.1')
const CLIENT_AUTH = der.objectId('1.3.6.1.5.5.7.3.2')
const CA_KEY_USAGE = der.bitString(Uint8Array.of(0b0000_0110), 1)
const LEAF_KEY_USAGE = der.bitString(Uint8Array.of(0b1000_0000), 7)
const LEAF_KEY_USAGE_WITH_ENCIPHERMENT = der.bitString(Uint8Array.of(0b1010_0000), 5)

function encodeExtensions(request: CertificateRequest): Uint8Array[] {
  const { use, key, issuerKey, hosts = [], alternativeNames = [], canEncipherKeys } = request
  const isCa = use === 'ca'
  const leafUsage = canEncipherKeys ? LEAF_KEY_USAGE_WITH_ENCIPHERMENT : LEAF_KEY_USAGE
  const result = [
    criticalExtension('2.5.29.15', isCa ? CA_KEY_USAGE : leafUsage), // key usage
    criticalExtension('2.5.29.19', isCa ? der.sequence(der.TRUE) : der.sequence()), // basic constraints
    extension('2.5.29.14', der.octetString(keyId(key))), // subject key identifier
    extension('2.5.29.35', der.sequence(der.implicit(0, keyId(issuerKey)))), // authority key identifier
  ]
  if (!isCa) result.push(extension('2.5.29.37', der.sequence(use === 'server' ? SERVER_AUTH : CLIENT_AUTH)))
  const names = [...hosts.map(alternativeName), ...alternativeNames]
  if (names.length > 0) result.push(extension('2.5.29.17', der.sequence(...names)))
  return result
}

const extension = (id: string, value: Uint8Array) => der.sequence(der.objectId(id), der.octetString(value))
const criticalExtension = (id: string, value: Uint8Array) =>
  der.sequence(der.objectId(id), der.TRUE, der.octetString(value))

const alternativeName = (host: string) =>
  isIP(host) ? der.implicit(7, der.ipAddressBytes(host)) : der.implicit(2, Buffer.from(host, 'ascii'))

const encodePublicKey = (key: KeyObject) =>
  (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' })

/**
 * Returns the 20-byte identifier of a key: a hash of the last 65 bytes of the public key, which are the curve point of
 * a P-256 key.
 */
const keyId = (key: KeyObject) =>
  createHash('sha256').update(encodePublicKey(key).subarray(-65)).digest().subarray(0, 20)

function encodePem(bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
