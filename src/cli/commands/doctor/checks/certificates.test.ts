import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { issueCertificate } from '../../../../apiserver/security/certificate.ts'
import { aContext } from '../doctor.fixture.ts'
import { certificates } from './certificates.ts'

const DAY_MS = 86_400_000
const NOW_MS = aContext().clock.nowMs()
const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Issues a certificate with a lifetime of `lifetimeDays` that expires in `leftDays`. */
function aCertificate(lifetimeDays: number, leftDays: number): string {
  const notAfterMs = NOW_MS + leftDays * DAY_MS
  const name = { commonName: 'ann' }
  return issueCertificate({
    ...{ subject: name, issuer: name, key, issuerKey: key, use: 'client', serialNumber: Uint8Array.of(1) },
    notBeforeMs: notAfterMs - lifetimeDays * DAY_MS,
    notAfterMs,
  })
}

/** Runs the check with these credentials and a server without TLS. */
const check = (credentials: object) =>
  certificates.run(aContext({ connection: { server: 'http://127.0.0.1:1', credentials: async () => credentials } }))

describe('the check of certificates', () => {
  it.each([
    ['ok', 365, 15],
    ['warning', 365, 13],
    ['ok', 1, 0.3],
    ['warning', 1, 0.1],
    ['error', 365, -1],
  ])('PLUS-9 returns %s for a certificate of %d days with %d days left', async (status, lifetimeDays, leftDays) => {
    expect(await check({ cert: aCertificate(lifetimeDays, leftDays) })).toEqual([expect.objectContaining({ status })])
  })

  it('PLUS-9 reads the expiration of a JSON Web Token, and accepts other tokens', async () => {
    const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`
    expect(await check({ token: tokenOf({ exp: NOW_MS / 1_000 - 1 }) })).toEqual([
      expect.objectContaining({ status: 'error', message: expect.stringMatching(/^The token expired at /) }),
    ])
    expect(await check({ token: tokenOf({ exp: NOW_MS / 1_000 + 60 }) })).toEqual([
      expect.objectContaining({ status: 'ok' }),
    ])
    expect(await check({ token: 'opaque' })).toEqual([])
  })

  it('PLUS-9 returns unknown if the credentials cannot be read', async () => {
    const credentials = () => Promise.reject(new Error('the plugin failed'))
    const context = aContext({ connection: { server: 'http://127.0.0.1:1', credentials } })
    expect(await certificates.run(context)).toEqual([
      { status: 'unknown', message: 'The credentials of the kubeconfig cannot be read: the plugin failed' },
    ])
  })
})
