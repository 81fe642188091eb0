import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadOrCreatePki, type Pki, servingTlsOptions } from '../apiserver/security/index.ts'
import { systemClock } from '../base/clock.ts'
import { writePrivateFile } from '../base/files.ts'
import { buildKubeconfig } from './kubeconfig.ts'

const hasKubectl = (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'kubectl')))
const dir = mkdtempSync(join(tmpdir(), 'stowage-kubeconfig-'))
let pki: Pki

beforeAll(async () => {
  pki = await loadOrCreatePki({ dir: join(dir, 'pki'), clock: systemClock() })
})
afterAll(() => rmSync(dir, { recursive: true }))

const aKubeconfig = (overrides: Partial<Parameters<typeof buildKubeconfig>[0]> = {}) =>
  buildKubeconfig({ server: 'https://[::1]:7443', caCert: pki.caCert, credential: pki.admin, ...overrides })

describe('buildKubeconfig', () => {
  it('has one cluster, one user and one context, with inline certificates and key', () => {
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    expect(parse(aKubeconfig())).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'stowage',
          cluster: { server: 'https://[::1]:7443', 'certificate-authority-data': base64(pki.caCert) },
        },
      ],
      users: [
        {
          name: 'stowage-admin',
          user: { 'client-certificate-data': base64(pki.admin.cert), 'client-key-data': base64(pki.admin.key) },
        },
      ],
      contexts: [{ name: 'stowage-admin@stowage', context: { cluster: 'stowage', user: 'stowage-admin' } }],
      'current-context': 'stowage-admin@stowage',
      preferences: {},
    })
  })

  it('quotes cluster names that have a special meaning in YAML', () => {
    for (const clusterName of ['no', '1', 'a: b', '#', '"', "it's", 'line\nbreak'])
      expect(parse(aKubeconfig({ clusterName })).clusters[0].name).toBe(clusterName)
  })
})

// With CI=true a missing kubectl is a failure, not a skip.
describe.skipIf(!hasKubectl && !process.env.CI)('kubectl', () => {
  const kubectl = async (credential: Pki['admin'], server: string, ...args: string[]) => {
    const path = join(dir, `${credential.user}.kubeconfig`)
    await writePrivateFile(path, aKubeconfig({ credential, server }))
    const { stdout } = await promisify(execFile)('kubectl', ['--kubeconfig', path, ...args])
    return stdout
  }

  it('SYS-2 reads the kubeconfig', async () => {
    const view = await kubectl(pki.viewer, 'https://127.0.0.1:7443', 'config', 'view', '--output', 'json')
    expect(JSON.parse(view)).toMatchObject({
      clusters: [{ name: 'stowage', cluster: { server: 'https://127.0.0.1:7443' } }],
      contexts: [{ context: { cluster: 'stowage', user: 'stowage-viewer' } }],
    })
  })

  it('SYS-9 authenticates with the server, and verifies its certificate', async () => {
    const server = https.createServer(servingTlsOptions(pki), (request, response) => {
      const socket = request.socket as TLSSocket
      response.end(`${socket.authorized} ${socket.getPeerCertificate().subject.CN}`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      for (const host of ['127.0.0.1', 'localhost'])
        expect(await kubectl(pki.viewer, `https://${host}:${port}`, 'get', '--raw', '/')).toBe('true stowage-viewer')
    } finally {
      server.close()
      server.closeAllConnections()
    }
  })
})
