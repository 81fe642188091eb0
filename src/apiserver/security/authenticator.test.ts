// Tests authentication over real TLS connections, with a server that responds to each request with the authenticated user.
import { createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SubjectName } from '../../api/distinguished-name.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { type Authentication, createAuthenticator } from './authenticator.ts'
import { issueCertificate } from './certificate.ts'
import { loadOrCreatePki, type Pki } from './pki.ts'
import { parseRevocations } from './revocations.ts'
import { staticTokenAuthenticator } from './static-tokens.ts'
import { type ClientCertificate, clientCertificateOf, servingTlsOptions } from './tls.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const root = mkdtempSync(join(tmpdir(), 'stowage-authenticate-'))
let pki: Pki
let foreignPki: Pki
let server: TestServer

beforeAll(async () => {
  const clock = systemClock() // TLS uses the real time
  pki = await loadOrCreatePki({ dir: join(root, 'own'), clock })
  foreignPki = await loadOrCreatePki({ dir: join(root, 'foreign'), clock })
  server = await startServer({ pki, clock })
})

afterAll(async () => {
  await server.close()
  rmSync(root, { recursive: true })
})

describe('a client certificate', () => {
  it('SYS-9 authenticates the user in its CN, with the groups in its O', async () => {
    const { authentication } = await server.send({ tls: pki.admin })
    expect(authentication).toMatchObject({
      is: 'authenticated',
      user: { name: 'stowage-admin', groups: ['system:masters', 'system:authenticated'] },
    })
    expect(await server.send({ tls: pki.viewer })).toMatchObject({
      authentication: { user: { name: 'stowage-viewer', groups: ['stowage:viewers', 'system:authenticated'] } },
    })
  })

  it('provides a group for each O, a UID and a credential ID', async () => {
    const ann = issueClientCertificate({ commonName: 'ann', organizations: ['shop', 'staff', 'a, b'], uid: 'u-1' })
    const { authentication } = await server.send({ tls: ann })
    expect(authentication).toMatchObject({
      is: 'authenticated',
      user: { name: 'ann', uid: 'u-1', groups: ['shop', 'staff', 'a, b', 'system:authenticated'] },
    })
    const extra = userOf(authentication).extra
    expect(extra?.['authentication.kubernetes.io/credential-id']?.[0]).toMatch(/^X509SHA256=[0-9a-f]{64}$/)
  })

  it('SYS-22 is rejected at the next request on its connection after it was revoked', () => {
    const authenticator = createAuthenticator({ caCert: pki.caCert, tokenAuthenticators: [], clock: systemClock() })
    const certificate = new X509Certificate(pki.admin.cert)
    const clientCert = { der: certificate.raw, isTrusted: true }
    const { serialNumber, fingerprint256 } = certificate
    for (const line of [`serial 00${serialNumber}`, `sha256 ${fingerprint256} # lost laptop`]) {
      expect(authenticator.authenticate({ clientCert }).is).toBe('authenticated')
      authenticator.setRevocations(parseRevocations(`# revoked\n\n${line}\n`))
      expect(authenticator.authenticate({ clientCert })).toMatchObject({
        status: { code: 401, message: 'Unauthorized: the client certificate of "stowage-admin" is revoked' },
      })
      authenticator.setRevocations(parseRevocations('serial 01\n'))
    }
    expect(authenticator.authenticate({ clientCert }).is).toBe('authenticated')
  })

  it.each(['serial', 'serial xyz', 'sha256 abcd', 'name ann'])(
    'SYS-22 cannot be revoked by the line "%s": the error names the number of the line',
    (line) => {
      expect(() => parseRevocations(`serial 0A\n${line}`)).toThrow('line 2: expected "serial HEX" or "sha256 HEX"')
    },
  )

  it('SYS-22 is accepted if any CA of the bundle has issued it, until the bundle is replaced', () => {
    const bundle = `${foreignPki.caCert}${pki.caCert}`
    const authenticator = createAuthenticator({ caCert: bundle, tokenAuthenticators: [], clock: systemClock() })
    const [ownCert, foreignCert] = [pki, foreignPki].map(({ admin }) => ({
      der: new X509Certificate(admin.cert).raw,
      isTrusted: true,
    }))
    expect(authenticator.authenticate({ clientCert: ownCert! }).is).toBe('authenticated')
    expect(authenticator.authenticate({ clientCert: foreignCert! }).is).toBe('authenticated')
    authenticator.setCaCert(pki.caCert)
    expect(authenticator.authenticate({ clientCert: ownCert! }).is).toBe('authenticated')
    expect(authenticator.authenticate({ clientCert: foreignCert! }).is).toBe('rejected')
    expect(() => authenticator.setCaCert('nonsense')).toThrow()
    expect(authenticator.authenticate({ clientCert: ownCert! }).is).toBe('authenticated')
  })

  it('is parsed once for many connections', () => {
    const { authenticate } = createAuthenticator({ caCert: pki.caCert, tokenAuthenticators: [], clock: systemClock() })
    const connection = () => ({ clientCert: { der: new X509Certificate(pki.admin.cert).raw, isTrusted: true } })
    expect(userOf(authenticate(connection()))).toBe(userOf(authenticate(connection())))
  })

  it('SYS-9 is accepted or rejected by the handshake of its own connection', () => {
    const { authenticate } = createAuthenticator({ caCert: pki.caCert, tokenAuthenticators: [], clock: systemClock() })
    const der = new X509Certificate(pki.admin.cert).raw
    expect(authenticate({ clientCert: { der, isTrusted: true } }).is).toBe('authenticated')
    expect(authenticate({ clientCert: { der, isTrusted: false } }).is).toBe('rejected')
    expect(authenticate({ clientCert: { der, isTrusted: true } }).is).toBe('authenticated')
  })

  it('SYS-9 is rejected if another CA with the same name issued it', async () => {
    expect(await server.send({ tls: foreignPki.admin })).toMatchObject({
      authentication: {
        is: 'rejected',
        status: {
          code: 401,
          reason: 'Unauthorized',
          message: "Unauthorized: the client certificate was not issued by this server's CA",
        },
      },
    })
  })

  it('is rejected if another CA issued it, even if TLS trusts that CA', async () => {
    const trustingServer = await startServer({
      pki: { ...pki, caCert: pki.caCert + foreignPki.caCert },
      clock: systemClock(),
    })
    const { authentication, authorized } = await trustingServer.send({ tls: foreignPki.admin })
    await trustingServer.close()
    expect(authorized).toBe(true)
    expect(authentication.is).toBe('rejected')
  })

  it('SYS-9 is rejected if it is a server certificate', async () => {
    expect(await server.send({ tls: { cert: pki.servingCert, key: pki.servingKey } })).toMatchObject({
      authentication: {
        status: {
          message:
            'Unauthorized: the client certificate of "stowage" is not a client certificate, or the TLS handshake found it invalid',
        },
      },
    })
  })

  it('is rejected if its subject has no CN', async () => {
    expect(
      await server.send({ tls: issueClientCertificate({ commonName: '', organizations: ['system:masters'] }) }),
    ).toMatchObject({
      authentication: {
        status: { message: 'Unauthorized: the client certificate has no user: its subject has no CN' },
      },
    })
  })

  it('is rejected after it has expired, with the time of expiry', async () => {
    const expiredCert = issueClientCertificate({ commonName: 'ann' }, { notAfterMs: Date.UTC(2026, 0, 2) })
    expect(await server.send({ tls: expiredCert })).toMatchObject({
      authentication: {
        status: {
          code: 401,
          message: 'Unauthorized: the client certificate of "ann" expired at 2026-01-02T00:00:00.000Z',
        },
      },
    })
  })

  it('is rejected after it has expired on an open connection', async () => {
    const clock = manualClock(systemClock().nowMs())
    const otherServer = await startServer({ pki, clock })
    const agent = otherServer.agentFor({ tls: pki.admin, keepAlive: true })
    const firstResponse = await otherServer.send({ agent })
    await clock.advance(366 * DAY_MS)
    const secondResponse = await otherServer.send({ agent })
    await otherServer.close()
    expect([firstResponse.authentication.is, secondResponse.authentication.is]).toEqual(['authenticated', 'rejected'])
    expect(secondResponse.connection).toBe(firstResponse.connection)
  })

  it('authenticates its user on a resumed session', async () => {
    const resumingServer = await startServer({ pki, clock: systemClock(), resumesSessions: true })
    const agent = resumingServer.agentFor({ tls: pki.viewer })
    await resumingServer.send({ agent })
    const secondResponse = await resumingServer.send({ agent })
    await resumingServer.close()
    expect(secondResponse).toMatchObject({
      resumed: true,
      authentication: { is: 'authenticated', user: { name: 'stowage-viewer' } },
    })
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('is verified again for each connection with %s', async (maxVersion) => {
    const agent = server.agentFor({ tls: pki.viewer, maxVersion })
    await server.send({ agent })
    expect(await server.send({ agent })).toMatchObject({
      resumed: false,
      authentication: { is: 'authenticated', user: { name: 'stowage-viewer' } },
    })
  })

  it('is one object for all connections if the handshakes have verified it', async () => {
    const [first, second] = [await server.send({ tls: pki.viewer }), await server.send({ tls: pki.viewer })]
    expect(second.connection).not.toBe(first.connection)
    expect(second.certificateId).toBe(first.certificateId)
    expect((await server.send({ tls: pki.admin })).certificateId).not.toBe(first.certificateId)
  })

  it('is an object for each connection if it is not trusted', async () => {
    const tls = foreignPki.admin
    const [first, second] = [await server.send({ tls }), await server.send({ tls })]
    expect(second.certificateId).not.toBe(first.certificateId)
  })
})

describe('a bearer token', () => {
  it('SYS-9 authenticates its user', async () => {
    expect(await server.send({ authorization: `Bearer ${pki.viewer.token}` })).toMatchObject({
      authentication: {
        is: 'authenticated',
        user: { name: 'stowage-viewer', groups: ['stowage:viewers', 'system:authenticated'] },
      },
    })
    expect(await server.send({ authorization: `bearer   ${pki.admin.token} ` })).toMatchObject({
      authentication: { is: 'authenticated', user: { name: 'stowage-admin' } },
    })
  })

  it.each([
    ['Bearer unknown', 'the bearer token is not known'],
    ['Bearer', 'the bearer token in the Authorization header is empty'],
    ['Basic YWRtaW46YWRtaW4=', 'only bearer tokens are accepted in the Authorization header'],
    ['Negotiate abc', 'only bearer tokens are accepted in the Authorization header'],
  ])('SYS-9 is rejected rather than anonymous if it is invalid: %s', async (authorization, reason) => {
    expect(await server.send({ authorization })).toMatchObject({
      authentication: { is: 'rejected', status: { code: 401, message: `Unauthorized: ${reason}` } },
    })
  })

  it('is rejected unless it matches exactly', () => {
    const authenticator = createAuthenticator({
      caCert: pki.caCert,
      tokenAuthenticators: [staticTokenAuthenticator(pki.tokens)],
      clock: systemClock(),
    })
    const token = pki.admin.token!
    expect(authenticator.authenticateToken(token)).toMatchObject({ user: { name: 'stowage-admin' } })
    for (const invalidToken of [token.slice(0, -1), `${token}x`, token.toUpperCase(), ` ${token}`, ''])
      expect(authenticator.authenticateToken(invalidToken)).toBeUndefined()
  })

  it('is used only if there is no valid certificate', async () => {
    const authorization = `Bearer ${pki.viewer.token}`
    expect(await server.send({ tls: pki.admin, authorization })).toMatchObject({
      authentication: { user: { name: 'stowage-admin' } },
    })
    expect(await server.send({ tls: foreignPki.admin, authorization })).toMatchObject({
      authentication: { user: { name: 'stowage-viewer' } },
    })
    expect(await server.send({ tls: foreignPki.admin, authorization: 'Bearer unknown' })).toMatchObject({
      authentication: { is: 'rejected' },
    })
  })
})

describe('a request without credentials', () => {
  const anonymous = { is: 'anonymous', user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } }

  it('SYS-9 is authenticated as system:anonymous', async () => {
    expect((await server.send({})).authentication).toEqual(anonymous)
    expect((await server.send({ authorization: ' ' })).authentication).toEqual(anonymous)
  })

  it('stays anonymous on a resumed session, even though Node.js reports it as authorized', async () => {
    const resumingServer = await startServer({ pki, clock: systemClock(), resumesSessions: true })
    const agent = resumingServer.agentFor({})
    await resumingServer.send({ agent })
    const secondResponse = await resumingServer.send({ agent })
    await resumingServer.close()
    expect(secondResponse).toMatchObject({ resumed: true, authorized: true })
    expect(secondResponse.authentication).toEqual(anonymous)
  })
})

function issueClientCertificate(subject: SubjectName, { notAfterMs = systemClock().nowMs() + DAY_MS } = {}) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = issueCertificate({
    subject,
    issuer: { commonName: 'stowage-ca' },
    key: privateKey,
    issuerKey: createPrivateKey(readFileSync(join(root, 'own', 'ca.key'))),
    use: 'client',
    serialNumber: randomBytes(16),
    notBeforeMs: Date.UTC(2026, 0, 1),
    notAfterMs,
  })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}

const userOf = (authentication: Authentication) => {
  if (authentication.is === 'rejected') throw new Error(authentication.status.message)
  return authentication.user
}

interface TestResponse {
  authentication: Authentication
  authorized: boolean
  resumed: boolean
  /** The same for the same object. */
  certificateId: number | undefined
  /** The client's port, which is the same for all requests on a connection. */
  connection: number
}

interface AgentSettings {
  tls?: { cert: string; key: string }
  keepAlive?: boolean
  maxVersion?: 'TLSv1.2' | 'TLSv1.3'
}

type TestServer = Awaited<ReturnType<typeof startServer>>

const certificateIds = new WeakMap<ClientCertificate, number>()
let lastCertificateId = 0

function certificateIdOf(certificate: ClientCertificate): number {
  const id = certificateIds.get(certificate) ?? ++lastCertificateId
  certificateIds.set(certificate, id)
  return id
}

interface ServerSettings {
  pki: Pki
  clock: Clock
  /** Default: false, as in servingTlsOptions. */
  resumesSessions?: boolean
}

async function startServer({ pki, clock, resumesSessions = false }: ServerSettings) {
  const { caCert } = await loadOrCreatePki({ dir: join(root, 'own'), clock: systemClock() })
  const authenticator = createAuthenticator({
    caCert,
    tokenAuthenticators: [staticTokenAuthenticator(pki.tokens)],
    clock,
  })
  const tlsOptions = { ...servingTlsOptions(pki), ...(resumesSessions ? { secureOptions: 0 } : {}) }
  const httpsServer = https.createServer(tlsOptions, (request, response) => {
    const socket = request.socket as TLSSocket
    const clientCert = clientCertificateOf(socket)
    const { authorization } = request.headers
    const body: TestResponse = {
      authentication: authenticator.authenticate({ authorization, clientCert }),
      certificateId: clientCert && certificateIdOf(clientCert),
      authorized: socket.authorized,
      resumed: socket.isSessionReused(),
      connection: socket.remotePort!,
    }
    response.end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => httpsServer.listen(0, '127.0.0.1', resolve))
  const { port } = httpsServer.address() as AddressInfo

  const agentFor = ({ tls, keepAlive = false, maxVersion = 'TLSv1.3' }: AgentSettings) =>
    new https.Agent({ ca: pki.caCert, cert: tls?.cert, key: tls?.key, keepAlive, maxVersion })

  const send = ({ tls, authorization, agent = agentFor({ tls }) }: TestRequest) =>
    new Promise<TestResponse>((resolve, reject) => {
      const headers = authorization === undefined ? {} : { authorization }
      const request = https.get({ host: '127.0.0.1', port, agent, headers }, async (response) => {
        let responseText = ''
        for await (const chunk of response) responseText += chunk
        resolve(JSON.parse(responseText))
      })
      request.on('error', reject)
    })

  const close = () =>
    new Promise<void>((resolve) => {
      httpsServer.close(() => resolve())
      httpsServer.closeAllConnections()
    })
  return { send, agentFor, close }
}

interface TestRequest {
  tls?: { cert: string; key: string }
  authorization?: string
  agent?: https.Agent
}
