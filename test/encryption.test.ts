// Tests encryption at rest in the built program, and TLS with client certificates between its servers and etcd.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { copyFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { issueCertificate } from '../src/apiserver/security/certificate.ts'
import { etcdSkipReason, startEtcd } from './helpers/etcd.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
const MARKER = 'marker-4711-of-a-secret'
const MARKER_BASE64 = Buffer.from(MARKER).toString('base64')
const secret = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, annotations: { note: MARKER } },
  data: { key: MARKER_BASE64 },
})

let dir: string
const servers: RunningServer[] = []
const cleanups: (() => Promise<void>)[] = []

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-encryption-'))
})

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill()))
  for (const clean of cleanups.splice(0)) await clean()
  await rm(dir, { recursive: true, force: true })
})

async function start(flags: readonly string[] = [], name = 'data', pkiDir?: string): Promise<RunningServer> {
  const pkiFlags = pkiDir ? ['--pki-dir', pkiDir] : []
  const server = await startServer({
    dataDir: join(dir, name),
    command: 'server',
    ...(pkiDir ? { pkiDir } : {}),
    flags: [...flags, ...pkiFlags],
  })
  servers.push(server)
  return server
}

async function stop(server: RunningServer): Promise<void> {
  servers.splice(servers.indexOf(server), 1)
  await server.stop()
}

/** Returns the files below a directory that contain the marker, plain or in base64. */
async function filesWithMarker(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  expect(files.length).toBeGreaterThan(3)
  const filesFound: string[] = []
  for (const file of files) {
    const content = await readFile(file)
    if (content.includes(MARKER) || content.includes(MARKER_BASE64)) filesFound.push(file)
  }
  return filesFound
}

async function pollUntil(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}

const configFile = () => join(dir, 'data/pki/encryption.yaml')
const readMarker = async (server: RunningServer, name = 'a') =>
  (await server.call('GET', `${SECRETS}/${name}`)).json.data?.key

describe('a server with encryption at rest', () => {
  it('SYS-9 SYS-21 writes no plaintext Secret to the store, the audit log, the log or a backup', async () => {
    const policy = join(dir, 'policy.yaml')
    await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n')
    const server = await start(['--audit-policy-file', policy, '--log-level', 'debug'])
    expect((await server.call('POST', SECRETS, secret('a'))).status).toBe(201)
    const patch = { stringData: { other: MARKER } }
    const mergePatch = { 'content-type': 'application/merge-patch+json' }
    expect((await server.call('PATCH', `${SECRETS}/a`, patch, mergePatch)).status).toBe(200)
    const invalidSecret = { ...secret('b'), data: { [`${MARKER}/`]: MARKER_BASE64 } }
    expect((await server.call('POST', SECRETS, invalidSecret)).status).toBe(422)
    expect((await server.call('POST', '/api/v1/namespaces/default/pods', secret('c'))).status).toBe(400)
    expect((await server.call('GET', SECRETS)).text).toContain(MARKER_BASE64)
    const backup = await runStowage('backup', '--data-dir', server.dataDir, '--to', join(dir, 'backup'))
    expect(backup.stdout).toContain(`Keep a copy of their key separately: ${configFile()}`)
    await runStowage('backup', '--data-dir', server.dataDir, '--archive', join(dir, 'backup/archive'))
    await stop(server)

    expect(await filesWithMarker(join(dir, 'data'))).toEqual([])
    expect(await filesWithMarker(join(dir, 'backup'))).toEqual([])
    expect((await readFile(join(dir, 'backup/archive'))).includes('k8s:enc:aesgcm:v1:key-')).toBe(true)
    expect(server.log()).not.toContain(MARKER)
    expect(server.log()).not.toContain(MARKER_BASE64)
    expect((await readFile(join(dir, 'data/store/store.mdb'))).includes('k8s:enc:aesgcm:v1:key-')).toBe(true)
    expect(await readdir(join(dir, 'backup/pki'))).not.toContain('encryption.yaml')
    expect((await stat(configFile())).mode & 0o777).toBe(0o600)

    expect(await readMarker(await start())).toBe(MARKER_BASE64)
    await expect(start([], 'backup')).rejects.toThrow(
      /Cannot use the store: .* core\/secrets\/default\/a cannot be decrypted: .* does not have key "key-.* Restore encryption\.yaml/,
    )
    await copyFile(configFile(), join(dir, 'backup/pki/encryption.yaml'))
    expect(await readMarker(await start([], 'backup'))).toBe(MARKER_BASE64)
  })

  it('SYS-9 rotates its key while it runs, and keeps a key that is still in use', async () => {
    const server = await start()
    await server.call('POST', SECRETS, secret('a'))
    const originalText = await readFile(configFile(), 'utf8')
    const [, oldKey] = /name: (key-\w+)/.exec(originalText)!
    const rotation = JSON.parse(
      (await runStowage('encryption', 'rotate', '--data-dir', server.dataDir, '-o', 'json')).stdout,
    )
    expect(rotation).toMatchObject({ file: configFile(), oldKeys: [oldKey] })
    const rotatedText = await readFile(configFile(), 'utf8')
    await pollUntil(() => server.log().includes('rewrote stored values with the current encryption key'))

    await writeFile(configFile(), 'kind: Nonsense')
    await pollUntil(() => server.log().includes('cannot use the new encryption configuration; keeping the old one'))
    await writeFile(configFile(), originalText) // without the new key, which is in use
    await pollUntil(() => server.log().includes(`does not have key \\"${rotation.key}\\"`))
    expect(await readMarker(server)).toBe(MARKER_BASE64)

    await writeFile(configFile(), rotatedText.replace(new RegExp(` *- name: ${oldKey}\\n *secret: .*\\n`), ''))
    const isReloaded = () => server.log().split('encryption configuration reloaded').length === 3
    await pollUntil(isReloaded)
    expect(await readFile(configFile(), 'utf8')).not.toContain(oldKey)
    await stop(server)
    expect(await readMarker(await start())).toBe(MARKER_BASE64)
  })

  it('SYS-9 encrypts at startup the Secrets that an earlier configuration stored in plain text', async () => {
    const plainConfig = join(dir, 'plain.yaml')
    const head = 'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n'
    await writeFile(plainConfig, `${head}resources: [{resources: [secrets], providers: [{identity: {}}]}]\n`, {
      mode: 0o600,
    })
    const plainServer = await start(['--encryption-provider-config', plainConfig])
    await plainServer.call('POST', SECRETS, secret('a'))
    await stop(plainServer)
    const store = join(dir, 'data/store/store.mdb')
    expect((await readFile(store)).includes(MARKER_BASE64)).toBe(true)

    const key = Buffer.alloc(32, 1).toString('base64')
    const providers = `[{aesgcm: {keys: [{name: k1, secret: ${key}}]}}, {identity: {}}]`
    const encryptingConfig = join(dir, 'encrypting.yaml')
    await writeFile(encryptingConfig, `${head}resources: [{resources: [secrets], providers: ${providers}}]\n`, {
      mode: 0o640,
    })
    const encryptingServer = await start(['--encryption-provider-config', encryptingConfig])
    await pollUntil(() => encryptingServer.log().includes('rewrote stored values with the current encryption key'))
    expect(await readMarker(encryptingServer)).toBe(MARKER_BASE64)
    await stop(encryptingServer)
    expect((await readFile(store)).includes('k8s:enc:aesgcm:v1:k1:')).toBe(true)
  })

  it('SYS-9 does not start with a configuration that all users can read, and names the file', async () => {
    const file = join(dir, 'open.yaml')
    await writeFile(file, '', { mode: 0o644 })
    const flags = ['--data-dir', join(dir, 'data'), '--encryption-provider-config', file]
    expect(await runStowage('server', ...flags)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${file}: all users of the machine can access the keys`),
    })
  })
})

const skipMessage = etcdSkipReason()

describe.skipIf(skipMessage)(`servers on etcd${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  it('SYS-9 share the key in their credentials, and etcd contains no plaintext Secret', async () => {
    const etcd = await startEtcd({ dir })
    cleanups.push(() => etcd.remove())
    const flags = ['--store', `etcd://${etcd.endpoints.join(',')}/test`]
    const a = await start(flags, 'a', join(dir, 'pki'))
    const b = await start(flags, 'b', join(dir, 'pki'))
    await a.call('POST', SECRETS, secret('a'))
    await b.call('POST', SECRETS, secret('b'))
    expect(await readMarker(b, 'a')).toBe(MARKER_BASE64)
    expect(await readMarker(a, 'b')).toBe(MARKER_BASE64)
    await stop(a)
    await stop(b)
    expect(await filesWithMarker(dir)).toEqual([])
  })

  it('SYS-9 connect with client certificates, and do not start without one', async () => {
    const files = await createCertificates(dir)
    const etcd = await startEtcd({ dir, tls: { ca: files.ca, cert: files.serverCert, key: files.serverKey } })
    cleanups.push(() => etcd.remove())
    const store = ['--store', `etcds://${etcd.endpoints.join(',')}/test`, '--etcd-ca', files.ca]
    const client = ['--etcd-cert', files.clientCert, '--etcd-key', files.clientKey]
    const server = await start([...store, ...client])
    expect((await server.call('POST', SECRETS, secret('a'))).status).toBe(201)
    expect(await readMarker(server)).toBe(MARKER_BASE64)
    await stop(server)
    const withoutCertificate = await runStowage('server', '--data-dir', join(dir, 'other'), ...store)
    expect(withoutCertificate.code).toBe(1)
    expect(withoutCertificate.stderr).toContain(`Cannot use etcd at ${etcd.endpoints[0]} (--store)`)
  })
})

/** Writes a CA, a serving certificate for 127.0.0.1 and a client certificate, and returns the paths. */
async function createCertificates(parent: string) {
  const nowMs = Date.now()
  const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const caKey = newKey()
  const issue = (commonName: string, use: 'ca' | 'server' | 'client', key: KeyObject) =>
    issueCertificate({
      subject: { commonName },
      issuer: { commonName: 'etcd-ca' },
      key,
      issuerKey: caKey,
      use,
      ...(use === 'server' ? { hosts: ['127.0.0.1'] } : {}),
      serialNumber: Buffer.from([use.length, 1, 2, 3]),
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3_600_000,
    })
  const write = async (name: string, text: string) => {
    const path = join(parent, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
  const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }) as string
  const [serverKey, clientKey] = [newKey(), newKey()]
  return {
    ca: await write('etcd-ca.crt', issue('etcd-ca', 'ca', caKey)),
    serverCert: await write('etcd-server.crt', issue('etcd', 'server', serverKey)),
    serverKey: await write('etcd-server.key', pem(serverKey)),
    clientCert: await write('etcd-client.crt', issue('stowage', 'client', clientKey)),
    clientKey: await write('etcd-client.key', pem(clientKey)),
  }
}
