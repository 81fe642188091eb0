import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type CertificateRequest, issueCertificate } from './certificate.ts'

const aKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const caKey = aKey()
const leafKey = aKey()

const aCertificate = (overrides: Partial<CertificateRequest> = {}) =>
  issueCertificate({
    subject: { commonName: 'ann', organizations: ['shop', 'staff'] },
    issuer: { commonName: 'ca' },
    key: leafKey,
    issuerKey: caKey,
    use: 'client',
    serialNumber: randomBytes(16),
    notBeforeMs: Date.UTC(2026, 0, 1),
    notAfterMs: Date.UTC(2060, 0, 1),
    ...overrides,
  })
const aCa = () => aCertificate({ subject: { commonName: 'ca' }, key: caKey, use: 'ca' })

describe('issueCertificate', () => {
  it('sets the subject, issuer, serial number, validity and key', () => {
    const certificate = new X509Certificate(aCertificate({ serialNumber: Uint8Array.of(0xab, 0xcd) }))
    expect(certificate.subject).toBe('O=shop\nO=staff\nCN=ann')
    expect(certificate.issuer).toBe('CN=ca')
    expect(certificate.serialNumber).toBe('ABCD')
    expect(Date.parse(certificate.validFrom)).toBe(Date.UTC(2026, 0, 1))
    expect(Date.parse(certificate.validTo)).toBe(Date.UTC(2060, 0, 1))
    expect(certificate.checkPrivateKey(leafKey)).toBe(true)
  })

  it("signs with the issuer's key", () => {
    const [ca, leaf] = [new X509Certificate(aCa()), new X509Certificate(aCertificate())]
    expect(ca.ca).toBe(true)
    expect(leaf.ca).toBe(false)
    expect(leaf.checkIssued(ca)).toBe(true)
    expect(leaf.verify(ca.publicKey)).toBe(true)
    const otherIssuer = new X509Certificate(aCertificate({ issuerKey: aKey() }))
    expect(otherIssuer.checkIssued(ca)).toBe(false)
    expect(otherIssuer.verify(ca.publicKey)).toBe(false)
  })

  it('supports any text in names', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), (commonName) => {
        const { subject } = new X509Certificate(aCertificate({ subject: { commonName } })).toLegacyObject()
        expect(subject.CN).toBe(commonName)
      }),
      { numRuns: 50 },
    )
  })

  it('issues a certificate for the requested hosts only', () => {
    const dnsName = fc.stringMatching(/^[a-z][a-z0-9]{0,10}(\.[a-z][a-z0-9]{0,10}){0,3}$/)
    fc.assert(
      fc.property(fc.array(dnsName), fc.array(fc.oneof(fc.ipV4(), fc.ipV6())), (names, addresses) => {
        const certificate = new X509Certificate(aCertificate({ use: 'server', hosts: [...names, ...addresses] }))
        for (const name of names) expect(certificate.checkHost(name)).toBe(name)
        for (const address of addresses) expect(certificate.checkIP(address)).toBe(address)
        expect(certificate.checkHost('elsewhere.example')).toBeUndefined()
      }),
      { numRuns: 50 },
    )
  })

  it('issues certificates that openssl verifies strictly, each for its own use only', () => {
    const dir = mkdtempSync(join(tmpdir(), 'stowage-certificate-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    writeFileSync(join(dir, 'ca.crt'), aCa())
    writeFileSync(join(dir, 'client.crt'), aCertificate())
    writeFileSync(join(dir, 'server.crt'), aCertificate({ use: 'server', hosts: ['localhost', '::1'] }))
    const verify = (purpose: string, file: string) =>
      execFileSync('openssl', ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', 'ca.crt', file], {
        cwd: dir,
        encoding: 'utf8',
        stdio: 'pipe',
      })
    expect(verify('sslclient', 'client.crt')).toContain('client.crt: OK')
    expect(verify('sslserver', 'server.crt')).toContain('server.crt: OK')
    expect(() => verify('sslclient', 'server.crt')).toThrow()
    expect(() => verify('sslserver', 'client.crt')).toThrow()
  })
})
