import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { parseCertificationRequest } from '../../api/certification-request.ts'
import { loadOrCreatePki } from '../../apiserver/index.ts'
import { createServerFixture, type Json } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { ensureServingCertificate } from './serving-certificate.ts'

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const DAY_MS = 24 * 60 * 60 * 1_000

it("SYS-26 ensureServingCertificate requests an agent's certificate once, and again shortly before it expires", async () => {
  const server = await createServerFixture()
  const { clock } = server
  const root = await mkdtemp(join(tmpdir(), 'stowage-serving-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const pki = await loadOrCreatePki({ dir: join(root, 'ca'), clock })
  const client = server.clientOf('node')
  const signal = new AbortController().signal
  const ensure = () =>
    ensureServingCertificate({ root, nodeName: 'n1', ca: pki.caCert, client, clock, log: silentLog }, signal)
  const listRequests = async (): Promise<Json[]> => (await server.get(REQUESTS)).json.items

  async function sign(request: Json): Promise<void> {
    const path = `${REQUESTS}/${request.metadata.name}`
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Test' }]
    const approved = (await server.put(`${path}/approval`, { ...request, status: { conditions } })).json
    const {
      encodedSubject: subject,
      publicKey,
      alternativeNames,
    } = parseCertificationRequest(Buffer.from(request.spec.request, 'base64').toString())
    const certificate = pki.signCertificate({
      use: 'server',
      subject,
      publicKey,
      alternativeNames: alternativeNames.map(({ encoding }) => encoding),
      canEncipherKeys: false,
      notBeforeMs: clock.nowMs(),
      notAfterMs: clock.nowMs() + 10 * DAY_MS,
    })
    const status = { ...approved.status, certificate: Buffer.from(certificate).toString('base64') }
    expect((await server.put(`${path}/status`, { ...approved, status })).status).toBe(200)
  }
  async function ensureNew(count: number) {
    const pair = ensure()
    await server.waitUntil(async () => (await listRequests()).length === count, 'the request')
    await sign((await listRequests()).find(({ status }) => !status?.certificate)!)
    await clock.advance(1_000)
    return pair
  }

  const first = await ensureNew(1)
  expect(new X509Certificate(first.cert).subjectAltName).toBe('DNS:n1.node.stowage.internal')
  expect(await readFile(join(root, 'pki', 'serving.pem'), 'utf8')).toBe(first.cert + first.key)
  expect(await ensure()).toEqual(first)
  await clock.advance(8 * DAY_MS)
  expect((await ensureNew(2)).cert).not.toBe(first.cert)
})
