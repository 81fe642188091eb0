// Creates and reads certification requests (PKCS #10), the content of a CertificateSigningRequest: a subject and a public key,
// signed with the private key.
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import * as der from '../base/der/der.ts'
import { type DerElement, readElement, readElements, readObjectId } from '../base/der/der-reader.ts'
import { decodeName, encodeName, type SubjectName } from './distinguished-name.ts'

/** The kinds of subject alternative names, as messages name them. */
export type AlternativeNameKind = 'DNS' | 'Email' | 'IP' | 'URI' | 'other'

export interface CertificationRequest {
  readonly subject: SubjectName & { readonly organizations: readonly string[] }
  /** The subject as encoded in the request, with all attributes. */
  readonly encodedSubject: Uint8Array
  readonly publicKey: KeyObject
  readonly alternativeNames: readonly AlternativeName[]
}

export interface AlternativeName {
  readonly kind: AlternativeNameKind
  /** The name as encoded in the request. */
  readonly encoding: Uint8Array
}

const PEM_LABEL = 'CERTIFICATE REQUEST'
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17'

/** Returns a request in PEM, signed with an ECDSA key. */
export function createCertificationRequest({
  subject,
  key,
  dnsNames = [],
}: {
  readonly subject: SubjectName
  readonly key: KeyObject
  readonly dnsNames?: readonly string[]
}): string {
  const info = der.sequence(
    der.integer(Uint8Array.of(0)), // version 1
    encodeName(subject),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
    der.explicit(0, ...(dnsNames.length > 0 ? [encodeExtensionRequest(dnsNames)] : [])),
  )
  const algorithm = der.sequence(der.objectId(ECDSA_WITH_SHA256))
  const request = der.sequence(info, algorithm, der.bitString(sign('sha256', info, key)))
  const lines = Buffer.from(request)
    .toString('base64')
    .match(/.{1,64}/g)!
  return [`-----BEGIN ${PEM_LABEL}-----`, ...lines, `-----END ${PEM_LABEL}-----`, ''].join('\n')
}

const encodeExtensionRequest = (dnsNames: readonly string[]): Uint8Array => {
  const names = der.sequence(...dnsNames.map(encodeDnsName))
  const extension = der.sequence(der.objectId(SUBJECT_ALTERNATIVE_NAME), der.octetString(names))
  return der.sequence(der.objectId(EXTENSION_REQUEST), der.set(der.sequence(extension)))
}

/** Returns a DNS name as it is encoded in the alternative names of requests and certificates. */
export const encodeDnsName = (name: string): Uint8Array => der.implicit(2, Buffer.from(name, 'ascii'))

/** Reads a request in PEM and verifies its signature. Throws an Error with the reason if it is not valid. */
export function parseCertificationRequest(pem: string): CertificationRequest {
  const [, label, base64] = /-----BEGIN ([A-Z ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----/.exec(pem) ?? []
  if (label !== PEM_LABEL) throw new Error(`PEM block type must be ${PEM_LABEL}`)
  let parts: DerElement[]
  let fields: DerElement[]
  try {
    parts = readElements(readElement(Buffer.from(base64!, 'base64')).content)
    fields = readElements(parts[0]!.content)
  } catch {
    throw malformedError()
  }
  const [info, algorithm, signature] = parts
  const [, name, keyInfo, attributes] = fields
  if (!info || !algorithm || !signature || !name || !keyInfo) throw malformedError()
  const publicKey = parsePublicKey(keyInfo.encoding)
  checkSignature({ info, algorithm, signature, publicKey })
  try {
    return {
      subject: decodeName(name),
      encodedSubject: name.encoding,
      publicKey,
      alternativeNames: attributes ? alternativeNamesOf(attributes) : [],
    }
  } catch {
    throw malformedError()
  }
}

const malformedError = () => new Error('malformed certificate request')

function parsePublicKey(spki: Uint8Array): KeyObject {
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
  } catch {
    throw new Error('unsupported public key')
  }
}

/** The hashes of the signature algorithms. Ed25519 has none. */
const HASHES: Readonly<Record<string, string | null>> = {
  [ECDSA_WITH_SHA256]: 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.2.840.113549.1.1.11': 'sha256', // RSA
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.3.101.112': null, // Ed25519
}

interface SignedRequest {
  readonly info: DerElement
  readonly algorithm: DerElement
  readonly signature: DerElement
  readonly publicKey: KeyObject
}

function checkSignature({ info, algorithm, signature, publicKey }: SignedRequest): void {
  const [id] = readElements(algorithm.content)
  const hash = id && HASHES[readObjectId(id.content)]
  if (hash === undefined) throw new Error('unsupported signature algorithm')
  let isValid = false
  try {
    isValid = verify(hash, info.encoding, publicKey, signature.content.subarray(1)) // without the count of unused bits
  } catch {
    // the key does not belong to the algorithm
  }
  if (!isValid) throw new Error('the signature of the certificate request is not valid')
}

const NAME_KIND_BY_TAG: Readonly<Record<number, AlternativeNameKind>> = { 1: 'Email', 2: 'DNS', 6: 'URI', 7: 'IP' }

/** Returns the names in the attribute extensionRequest. */
function alternativeNamesOf(attributes: DerElement): AlternativeName[] {
  const names: AlternativeName[] = []
  for (const attribute of readElements(attributes.content)) {
    const [type, values] = readElements(attribute.content)
    if (!type || !values || readObjectId(type.content) !== EXTENSION_REQUEST) continue
    for (const extension of readElements(readElement(values.content).content)) {
      const [id, ...criticalAndValue] = readElements(extension.content) // critical is optional
      if (!id || readObjectId(id.content) !== SUBJECT_ALTERNATIVE_NAME) continue
      const generalNames = readElements(readElement(criticalAndValue.at(-1)!.content).content)
      names.push(...generalNames.map((name) => ({ kind: nameKindOf(name), encoding: name.encoding })))
    }
  }
  return names
}

/** Returns `other` for a DNS name with unprintable characters, and for an IP address that has neither 4 nor 16 bytes. */
function nameKindOf({ tag, content }: DerElement): AlternativeNameKind {
  const kind = NAME_KIND_BY_TAG[tag & 0x1f] ?? 'other'
  if (kind === 'DNS' && !/^[\x21-\x7e]+$/.test(Buffer.from(content).toString('latin1'))) return 'other'
  return kind === 'IP' && content.length !== 4 && content.length !== 16 ? 'other' : kind
}
