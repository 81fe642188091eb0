import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { systemClock } from '../../base/clock.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { buildKubeconfig } from '../../processes/kubeconfig.ts'
import { createHttpFixture } from '../http/http.fixture.ts'
import { httpClient } from '../http/http-client.ts'
import { kubeconfigConnection } from './kubeconfig.ts'

async function createDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-kubeconfig-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  return dir
}

async function writeKubeconfig(user: object, cluster: object = {}) {
  const dir = await createDirectory()
  const path = join(dir, 'config')
  const config = {
    'current-context': 'main',
    contexts: [
      { name: 'main', context: { cluster: 'c', user: 'u', namespace: 'shop' } },
      { name: 'other', context: { cluster: 'c', user: 'missing' } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://host:6443/', ...cluster } }],
    users: [{ name: 'u', user }],
  }
  await writeFile(path, JSON.stringify(config)) // JSON is YAML
  return { dir, path }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('kubeconfigConnection', () => {
  it('authenticates with the kubeconfig that the server writes', async () => {
    const { api, connection, pki, stop } = await createHttpFixture()
    onTestFinished(stop)
    const path = join(await createDirectory(), 'admin.kubeconfig')
    const credential = { user: 'admin', cert: pki.admin.cert, key: pki.admin.key }
    await writeFile(path, buildKubeconfig({ server: connection.server, caCert: pki.caCert, credential }))
    const client = httpClient({
      connection: await kubeconfigConnection({ path, clock: systemClock() }),
      clock: systemClock(),
    })
    onTestFinished(() => client.close())
    await client.create(configMapKind, { metadata: { namespace: 'default', name: 'a' } })
    expect((await api.get('/api/v1/namespaces/default/configmaps/a')).status).toBe(200)
  })

  it('reads inline certificates and the server name', async () => {
    const { path } = await writeKubeconfig(
      { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') },
      { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'kube', 'insecure-skip-tls-verify': true },
    )
    const connection = await kubeconfigConnection({ path, clock: manualClock() })
    expect(connection).toMatchObject({
      server: 'https://host:6443',
      namespace: 'shop',
      ca: 'CA',
      serverName: 'kube',
      insecure: true,
    })
    expect(await connection.credentials()).toEqual({ cert: 'CERT', key: 'KEY' })
  })

  it('reads files relative to the kubeconfig, and a token file again after a minute if it still exists', async () => {
    const { dir, path } = await writeKubeconfig({ tokenFile: 'token' }, { 'certificate-authority': 'ca.crt' })
    await writeFile(join(dir, 'ca.crt'), 'CA')
    await writeFile(join(dir, 'token'), 'one\n')
    const clock = manualClock()
    const { ca, credentials } = await kubeconfigConnection({ path, clock })
    expect(ca).toBe('CA')
    expect(await credentials()).toEqual({ token: 'one' })
    await writeFile(join(dir, 'token'), 'two\n')
    expect(await credentials()).toEqual({ token: 'one' })
    await clock.advance(60_000)
    expect(await credentials()).toEqual({ token: 'two' })
    await rm(join(dir, 'token'))
    await clock.advance(60_000)
    expect(await credentials()).toEqual({ token: 'two' })
  })

  it('caches the credentials of an exec plugin until shortly before they expire or until they are invalidated', async () => {
    const clock = manualClock()
    const { dir, path } = await writeKubeconfig({
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: './login',
        args: ['me'],
        env: [{ name: 'X', value: 'y' }],
      },
    })
    const expirationTimestamp = new Date(clock.nowMs() + 60_000).toISOString()
    const program = `#!/bin/sh
echo x >> "$(dirname "$0")/runs"
n=$(wc -l < "$(dirname "$0")/runs" | tr -d ' ')
echo "{\\"status\\":{\\"token\\":\\"$1-$X-$n\\",\\"expirationTimestamp\\":\\"${expirationTimestamp}\\"}}"
`
    await writeFile(join(dir, 'login'), program)
    await chmod(join(dir, 'login'), 0o755)
    const { credentials, invalidateCredentials } = await kubeconfigConnection({ path, clock })
    expect(await Promise.all([credentials(), credentials()])).toEqual([{ token: 'me-y-1' }, { token: 'me-y-1' }])
    expect(await credentials()).toEqual({ token: 'me-y-1' })
    invalidateCredentials!()
    expect(await credentials()).toEqual({ token: 'me-y-2' })
    await clock.advance(55_000)
    expect(await credentials()).toEqual({ token: 'me-y-3' })
  })

  it.each([
    [
      { command: 'sh', args: ['-c', 'echo hunter2; exit 3'] },
      'the exec plugin sh exited with status 3: run it in a terminal to see its error',
    ],
    [
      { command: 'sh', args: ['-c', 'echo hunter2; kill -9 $$'] },
      'the exec plugin sh was ended by the signal SIGKILL: run it in a terminal to see its error',
    ],
    [
      { command: 'no-such-plugin' },
      'cannot run the exec plugin no-such-plugin (ENOENT): install it, or correct its command in the kubeconfig',
    ],
    [{ command: 'echo', args: ['hunter2'] }, 'the exec plugin echo did not print a valid ExecCredential'],
    [
      { command: 'echo', args: ['{"status":{"clientKeyData":"hunter2"}}'] },
      'the exec plugin echo printed neither a token nor a certificate with its key',
    ],
  ])('reports the failure of the exec plugin %j without its output', async (exec, message) => {
    const { path } = await writeKubeconfig({ exec })
    const { credentials } = await kubeconfigConnection({ path, clock: manualClock() })
    await expect(credentials()).rejects.toThrow(new Error(message))
  })

  it('rejects an unsupported user field, and a context or user that does not exist', async () => {
    const { path } = await writeKubeconfig({ 'auth-provider': { name: 'gcp' } })
    const connect = (context?: string) => kubeconfigConnection({ path, context, clock: manualClock() })
    await expect(connect()).rejects.toThrow('user field "auth-provider" is not supported')
    await expect(connect('nope')).rejects.toThrow('has no context "nope"; it has "main", "other"')
    await expect(connect('other')).rejects.toThrow('has no user "missing"')
  })
})
