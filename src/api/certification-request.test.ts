import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCertificationRequest, parseCertificationRequest } from './certification-request.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const subject = { commonName: 'system:node:n1', organizations: ['system:nodes'] }

/** Creates a request with openssl and returns it in PEM. */
function opensslRequest(...args: string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'csr-'))
  const outputPath = join(dir, 'request.pem')
  execFileSync('openssl', ['req', '-new', '-nodes', '-keyout', join(dir, 'key.pem'), '-out', outputPath, ...args], {
    stdio: 'ignore',
  })
  return readFileSync(outputPath, 'utf8')
}

describe('certification requests', () => {
  it('have the subject and the type of the key with which they were created', () => {
    const request = parseCertificationRequest(createCertificationRequest({ subject, key: privateKey }))
    expect(request.subject).toEqual(subject)
    expect(request.alternativeNames).toEqual([])
    expect(request.publicKey.asymmetricKeyType).toBe('ec')
  })

  it('are rejected with more than one common name, because programs differ in which one they read', () => {
    const args = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-subj']
    const names = '/O=system:nodes/CN=kube-apiserver-kubelet-client/CN=system:node:n1'
    expect(() => parseCertificationRequest(opensslRequest(...args, names))).toThrow('malformed certificate request')
    expect(parseCertificationRequest(opensslRequest(...args, '/CN=system:node:n1')).subject.commonName).toBe(
      'system:node:n1',
    )
  })

  it('are accepted by openssl', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'csr-')), 'request.pem')
    writeFileSync(file, createCertificationRequest({ subject, key: privateKey }))
    const text = execFileSync('openssl', ['req', '-in', file, '-verify', '-noout', '-subject'], { encoding: 'utf8' })
    expect(text.replaceAll(' ', '')).toContain('O=system:nodes,CN=system:node:n1')
  })

  it.each([
    ['rsa', ['-newkey', 'rsa:2048']],
    ['ec', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384']],
    ['ed25519', ['-newkey', 'ed25519']],
  ])('are parsed if openssl created them with a key of type %s', (type, args) => {
    const request = parseCertificationRequest(opensslRequest(...args, '-subj', '/O=team/O=other/CN=ann/UID=7'))
    expect(request.subject).toEqual({ commonName: 'ann', organizations: ['team', 'other'] })
    expect(request.publicKey.asymmetricKeyType).toBe(type)
  })

  it('report the kinds of alternative names', () => {
    const pem = opensslRequest('-subj', '/CN=a', '-addext', 'subjectAltName=DNS:a,IP:1.2.3.4,email:a@b,URI:http://a')
    const { alternativeNames } = parseCertificationRequest(pem)
    expect(alternativeNames.map(({ kind }) => kind)).toEqual(['DNS', 'IP', 'Email', 'URI'])
  })

  it.each([
    ['no PEM', '', 'PEM block type must be CERTIFICATE REQUEST'],
    ['another PEM', '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----', 'PEM block type must be'],
    ['no DER', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----', 'malformed'],
    ['an empty sequence', '-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----', 'malformed'],
  ])('with %s are rejected', (_name, pem, message) => {
    expect(() => parseCertificationRequest(pem)).toThrow(message)
  })

  it('with a subject that was changed after signing are rejected', () => {
    const pem = createCertificationRequest({ subject, key: privateKey })
    const bytes = Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')
    bytes[bytes.indexOf('system:node:n1') + 13] = '2'.charCodeAt(0)
    const changedPem = `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----`
    expect(() => parseCertificationRequest(changedPem)).toThrow('the signature of the certificate request is not valid')
  })

  it('cut at any byte are rejected with an Error', () => {
    const bytes = Buffer.from(
      createCertificationRequest({ subject, key: privateKey }).replace(/-----.*-----/g, ''),
      'base64',
    )
    for (let length = 0; length < bytes.length; length++) {
      const base64 = bytes.subarray(0, length).toString('base64')
      const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${base64}\n-----END CERTIFICATE REQUEST-----`
      expect(() => parseCertificationRequest(pem)).toThrow(/malformed|unsupported|not valid/)
    }
  })
})
