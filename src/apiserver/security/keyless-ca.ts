// Issues a CA certificate and discards its key, for a setting that requires a CA certificate although the CA never issues
// another one.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { issueCertificate } from './certificate.ts'

const LIFETIME_MS = 10 * 365 * 24 * 60 * 60 * 1_000
const BACKDATE_MS = 5 * 60 * 1_000 // for clients whose clock is slow

/** Returns the certificate in PEM. Its key is discarded. */
export function issueKeylessCa(commonName: string, clock: Clock): string {
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = { commonName }
  const nowMs = clock.nowMs()
  return issueCertificate({
    subject,
    issuer: subject,
    key,
    issuerKey: key,
    use: 'ca',
    serialNumber: randomBytes(16),
    notBeforeMs: nowMs - BACKDATE_MS,
    notAfterMs: nowMs + LIFETIME_MS,
  })
}
