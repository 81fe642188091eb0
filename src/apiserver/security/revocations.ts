// Parses the list of revoked client certificates: one per line, by serial number or by SHA-256 fingerprint, in hexadecimal.
//   # Ann's laptop, lost
//   serial 5F:3A:…
//   sha256 9c1185a5…

export interface CertificateId {
  /** SHA-256 of the certificate, in lower-case hexadecimal. */
  readonly fingerprint: string
  /** In lower-case hexadecimal, without leading zeros. */
  readonly serialNumber: string
}

export type Revocations = (certificate: CertificateId) => boolean

export const NO_REVOCATIONS: Revocations = () => false

/** Throws an error that names the first invalid line. */
export function parseRevocations(text: string): Revocations {
  const serialNumbers = new Set<string>()
  const fingerprints = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const entry = line.replace(/#.*/, '').trim()
    if (entry === '') continue
    const [, kind, hex = ''] = /^(serial|sha256)\s+([0-9a-f:]+)$/i.exec(entry) ?? []
    const value = hex.replaceAll(':', '').toLowerCase()
    if (kind?.toLowerCase() === 'serial' && value !== '') serialNumbers.add(normalizeSerial(value))
    else if (kind?.toLowerCase() === 'sha256' && value.length === 64) fingerprints.add(value)
    else throw new Error(`line ${index + 1}: expected "serial HEX" or "sha256 HEX" with 64 digits`)
  }
  return ({ fingerprint, serialNumber }) => fingerprints.has(fingerprint) || serialNumbers.has(serialNumber)
}

export const normalizeSerial = (hex: string): string => hex.toLowerCase().replace(/^0+(?=.)/, '')
