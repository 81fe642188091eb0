// Changes the credential files of a running server, which uses them without a restart.
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOrCreatePki, type Pki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const NAMESPACES = '/api/v1/namespaces'

let dir: string
let pkiDir: string
let server: RunningServer
let pki: Pki

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-credentials-'))
  pkiDir = join(dir, 'data/pki')
  server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
  pki = await loadOrCreatePki({ dir: pkiDir, clock: systemClock() })
})

afterAll(async () => {
  await server?.kill()
  await rm(dir, { recursive: true, force: true })
})

const replaceFile = async (name: string, content: string) => {
  await writeFile(join(pkiDir, 'next'), content, { mode: 0o600 })
  await rename(join(pkiDir, 'next'), join(pkiDir, name))
}

async function pollUntil(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Sends a GET with a client certificate, on the agent's open connection if there is one. */
async function getWith(agent: Agent, path: string): Promise<IncomingMessage> {
  const outgoingRequest = request(`${server.url}${path}`, { agent })
  outgoingRequest.end()
  const [response] = (await once(outgoingRequest, 'response')) as [IncomingMessage]
  return response
}

async function requestStatus(agent: Agent): Promise<number> {
  const response = await getWith(agent, NAMESPACES)
  response.resume()
  await once(response, 'end')
  return response.statusCode!
}

const waitUntilEnded = (watch: IncomingMessage) => {
  watch.resume()
  return once(watch, 'end')
}

describe('a running server', () => {
  it('SYS-22 accepts new tokens, rejects removed ones and ends their watches, but no other watches', async () => {
    const text = await readFile(join(pkiDir, 'tokens.json'), 'utf8')
    const { tokens } = JSON.parse(text) as { tokens: object[] }
    const token = 'a-new-token-with-enough-characters'
    const bearer = { authorization: `Bearer ${token}` }
    const statusOfToken = async () => (await server.call('GET', NAMESPACES, undefined, bearer)).status
    expect(await statusOfToken()).toBe(401)
    const record = { token, user: 'ann', groups: ['system:masters'] }
    await replaceFile('tokens.json', JSON.stringify({ tokens: [...tokens, record] }))
    await pollUntil(async () => (await statusOfToken()) === 200)

    const watch = await server.open('GET', `${NAMESPACES}?watch=1`, bearer)
    const adminWatch = await server.open('GET', `${NAMESPACES}?watch=1`)
    let isAdminWatchEnded = false
    void waitUntilEnded(adminWatch).then(() => {
      isAdminWatchEnded = true
    })
    const watchEnd = waitUntilEnded(watch)
    await replaceFile('tokens.json', text)
    await watchEnd
    expect(await statusOfToken()).toBe(401)
    expect(isAdminWatchEnded).toBe(false)
    adminWatch.destroy()
  })

  it('SYS-22 keeps the tokens if the changed file is invalid, and names the reason', async () => {
    const text = await readFile(join(pkiDir, 'tokens.json'), 'utf8')
    await replaceFile('tokens.json', '{"tokens":[{"token":"short","user":"bob","groups":[]}]}')
    await pollUntil(() => server.log().includes('tokens[0] of user \\"bob\\" has less than 128 bits'))
    expect((await server.call('GET', NAMESPACES)).status).toBe(200)
    await replaceFile('tokens.json', text)
  })

  it('SYS-22 rejects a revoked certificate on its open connection, ends its watches, and accepts the certificate again once it is no longer listed', async () => {
    const { cert, key } = pki.viewer
    const agent = new Agent({ ca: server.ca, cert, key, keepAlive: true, maxSockets: 1 })
    const watchAgent = new Agent({ ca: server.ca, cert, key })
    try {
      expect(await requestStatus(agent)).toBe(200)
      const watchEnd = waitUntilEnded(await getWith(watchAgent, `${NAMESPACES}?watch=1`))
      await replaceFile('revoked-certificates', `serial ${new X509Certificate(cert).serialNumber} # lost\n`)
      await watchEnd
      expect(await requestStatus(agent)).toBe(401)
      await rm(join(pkiDir, 'revoked-certificates'))
      await pollUntil(async () => (await requestStatus(agent)) === 200)
    } finally {
      agent.destroy()
      watchAgent.destroy()
    }
  })

  it('SYS-22 serves a new certificate and accepts the clients of a second CA', async () => {
    const otherDir = join(dir, 'other')
    const otherPki = await loadOrCreatePki({ dir: otherDir, clock: systemClock() })
    const { cert, key } = otherPki.admin
    const requestWithOtherCertificate = async () => {
      const agent = new Agent({ ca: [server.ca, otherPki.caCert], cert, key })
      return requestStatus(agent).finally(() => agent.destroy())
    }
    expect(await requestWithOtherCertificate()).toBe(401)
    await replaceFile('ca.crt', `${server.ca}${otherPki.caCert}`)
    await pollUntil(async () => (await requestWithOtherCertificate()) === 200)
    await replaceFile('ca.crt', server.ca)
    await pollUntil(async () => (await requestWithOtherCertificate()) === 401)

    const { hostname, port } = new URL(server.url)
    const servedFingerprint = async () => {
      const socket = connect({ host: hostname, port: Number(port), ca: [server.ca, otherPki.caCert] })
      await once(socket, 'secureConnect')
      const { fingerprint256 } = socket.getPeerCertificate()
      socket.destroy()
      return fingerprint256
    }
    const otherFingerprint = new X509Certificate(otherPki.servingCert).fingerprint256
    expect(await servedFingerprint()).not.toBe(otherFingerprint)
    const ownKey = await readFile(join(pkiDir, 'serving.key'), 'utf8')
    await copyFile(join(otherDir, 'serving.crt'), join(pkiDir, 'serving.crt'))
    await replaceFile('serving.key', otherPki.servingKey)
    await pollUntil(async () => (await servedFingerprint()) === otherFingerprint)
    await replaceFile('serving.crt', pki.servingCert)
    await replaceFile('serving.key', ownKey)
    await pollUntil(async () => (await servedFingerprint()) !== otherFingerprint)
  })
})
