import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parseCertificationRequest } from '../../api/certification-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import { unavailable } from '../../api/status-error.ts'
import { loadOrCreatePki } from '../../apiserver/index.ts'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { Client } from '../../client/index.ts'
import { loadCredentials, saveCredentials } from './node-credentials.ts'
import { requestCertificate } from './request-certificate.ts'

const HOUR_MS = 3_600_000
const LIFETIME_MS = 10 * HOUR_MS

/** Creates a directory with a node's credentials, and a client of a fake server that issues certificates valid for ten hours. */
async function createCredentialsFixture() {
  const clock = manualClock()
  const root = await mkdtemp(join(tmpdir(), 'stowage-credentials-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const pki = await loadOrCreatePki({ dir: join(root, 'ca'), clock })
  const state = { requests: 0, failures: 0, denial: '' }
  let pendingRequest: CertificateSigningRequest | undefined
  const client = {
    async create(_kind: unknown, object: CertificateSigningRequest) {
      state.requests++
      if (state.failures-- > 0) throw unavailable('no connection')
      pendingRequest = { ...object, metadata: { ...object.metadata, name: 'csr-1' } }
      return pendingRequest
    },
    async get() {
      if (state.denial)
        return {
          ...pendingRequest!,
          status: { conditions: [{ type: 'Denied', status: 'True', message: state.denial }] },
        }
      const { encodedSubject: subject, publicKey } = parseCertificationRequest(
        Buffer.from(pendingRequest!.spec.request, 'base64').toString(),
      )
      const validity = { notBeforeMs: clock.nowMs(), notAfterMs: clock.nowMs() + LIFETIME_MS }
      const pem = pki.signCertificate({
        use: 'client',
        subject,
        publicKey,
        alternativeNames: [],
        canEncipherKeys: false,
        ...validity,
      })
      return { ...pendingRequest!, status: { certificate: Buffer.from(pem).toString('base64') } }
    },
  } as unknown as Client
  const { signal } = new AbortController()
  const request = () => requestCertificate({ client, nodeName: 'n1', clock, signal, onWaiting: () => {} })
  await saveCredentials(root, { server: 'https://localhost:1', ca: pki.caCert, nodeName: 'n1' }, await request())
  state.requests = 0
  return { root, clock, client, state, request }
}

type CredentialsFixture = Awaited<ReturnType<typeof createCredentialsFixture>>

function startRenewal(
  { client, clock }: CredentialsFixture,
  credentials: NonNullable<Awaited<ReturnType<typeof loadCredentials>>>,
) {
  const stop = new AbortController()
  const renewalRun = credentials.renew({ client, clock, random: () => 0.5, log: silentLog, signal: stop.signal })
  renewalRun.catch(() => {})
  onTestFinished(() => stop.abort())
}

/** Polls a condition that depends on file writes, which the manual clock does not control. */
const waitUntil = (condition: () => Promise<boolean>) => vi.waitUntil(condition, { timeout: 20_000, interval: 5 })

describe("a node's credentials", () => {
  it('SYS-9 are stored in private files that contain the certificate and its key', async () => {
    const { root, clock } = await createCredentialsFixture()
    const credentials = await loadCredentials(root, clock)
    expect(credentials?.nodeName).toBe('n1')
    const { cert = '', key = '' } = (await credentials?.connection.credentials()) ?? {}
    expect(new X509Certificate(cert).subject).toBe('O=system:nodes\nCN=system:node:n1')
    expect(key).toContain('PRIVATE KEY')
    for (const file of ['kubeconfig', 'pki/node.pem']) expect((await stat(join(root, file))).mode & 0o777).toBe(0o600)
    expect((await stat(join(root, 'pki'))).mode & 0o777).toBe(0o700)
    expect(await loadCredentials(join(root, 'other'), clock)).toBeUndefined()
  })

  it('SYS-22 are renewed with a new key at 80 % of their lifetime if the jitter is at its midpoint', async () => {
    const node = await createCredentialsFixture()
    const { root, clock, state } = node
    const credentials = (await loadCredentials(root, clock))!
    const oldCredentials = await credentials.connection.credentials()
    startRenewal(node, credentials)
    await clock.advance(0.79 * LIFETIME_MS)
    expect(state.requests).toBe(0)
    await clock.advance(0.02 * LIFETIME_MS)
    await waitUntil(async () => (await credentials.connection.credentials()).cert !== oldCredentials.cert)
    const renewedCredentials = await credentials.connection.credentials()
    expect(renewedCredentials.key).not.toBe(oldCredentials.key)
    expect(await readFile(join(root, 'pki/node.pem'), 'utf8')).toBe(
      `${renewedCredentials.cert}${renewedCredentials.key}`,
    )
    expect(state.requests).toBe(1)
  })

  it('SYS-22 are requested again after a failure', async () => {
    const node = await createCredentialsFixture()
    const { root, clock, state } = node
    const credentials = (await loadCredentials(root, clock))!
    const oldCredentials = await credentials.connection.credentials()
    state.failures = 2
    startRenewal(node, credentials)
    await clock.advance(0.81 * LIFETIME_MS)
    await waitUntil(async () => {
      await clock.advance(1_000)
      return (await credentials.connection.credentials()).cert !== oldCredentials.cert
    })
    expect(state.requests).toBe(3)
  })

  it('SYS-22 cannot be loaded after they expire; the error names the remedy', async () => {
    const { root, clock } = await createCredentialsFixture()
    await clock.advance(LIFETIME_MS + 1_000)
    await expect(loadCredentials(root, clock)).rejects.toThrow(/The certificate of node "n1" expired at .* join again/)
  })

  it('SYS-9 are not issued for a denied request; the error contains the reason', async () => {
    const { request, state } = await createCredentialsFixture()
    state.denial = 'unknown machine'
    await expect(request()).rejects.toThrow('"csr-1" was not granted (Denied): unknown machine')
  })
})
