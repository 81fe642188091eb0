// Since 1.32, kubectl sends protobuf when it creates objects from flags. Each such kubectl that kubectls.ts finds creates,
// reads and deletes objects on its own server; the tests read the results as JSON.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const kubectls = (await findKubectls()).filter(({ minor }) => minor >= 32)
const collapse = (text: string) => text.replace(/\s+/g, ' ')

// Debian's kubectl sends JSON only; there, the Go client of test/clients covers protobuf bodies.
if (kubectls.length === 0) it.skip('kubectl 1.32 or later: not found; name one in STOWAGE_KUBECTLS')

describe.sequential.each(kubectls)('kubectl $version', (program) => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-protobuf-'))
    server = await startServer({ dataDir: join(dir, 'data') })
    const home = join(dir, 'home')
    await mkdir(home)
    kubectl = createKubectl({ program, kubeconfig: server.kubeconfig, namespace: 'shop', home })
  })
  afterAll(async () => {
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  /** Reads an object of the namespace and removes the fields that the server adds. */
  async function readStored(path: string): Promise<any> {
    const { json } = await server.call('GET', `/api/v1/namespaces/shop${path}`)
    const { uid: _, resourceVersion: __, creationTimestamp: ___, managedFields: ____, ...metadata } = json.metadata
    return { ...json, metadata }
  }

  it('SYS-2 creates a namespace', async () => {
    expect(await kubectl.out('create namespace shop')).toBe('namespace/shop created\n')
    expect(await readStored('')).toEqual({
      kind: 'Namespace',
      apiVersion: 'v1',
      metadata: { name: 'shop', labels: { 'kubernetes.io/metadata.name': 'shop' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    })
  })

  it('SYS-2 creates a config map with text and bytes', async () => {
    const picture = join(dir, 'picture')
    await writeFile(picture, Buffer.from([0xff, 0xfe]))
    const flags = ['--from-literal=colour=grün', '--from-literal=none=', `--from-file=${picture}`]
    const out = await kubectl.out(['create', 'cm', 'settings', ...flags])
    expect(out).toBe('configmap/settings created\n')
    expect(await readStored('/configmaps/settings')).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'settings', namespace: 'shop' },
      data: { colour: 'grün', none: '' },
      binaryData: { picture: '//4=' },
    })
  })

  it('SYS-2 creates a secret', async () => {
    expect(await kubectl.out('create secret generic login --from-literal=password=hunter2')).toBe(
      'secret/login created\n',
    )
    expect(await readStored('/secrets/login')).toEqual({
      kind: 'Secret',
      apiVersion: 'v1',
      metadata: { name: 'login', namespace: 'shop' },
      data: { password: 'aHVudGVyMg==' },
      type: 'Opaque',
    })
  })

  it('SYS-2 creates a quota', async () => {
    const hard = { persistentvolumeclaims: '5', 'requests.storage': '10Gi' }
    const flag = Object.entries(hard).map(([name, amount]) => `${name}=${amount}`)
    expect(await kubectl.out(`create quota ceiling --hard=${flag.join()}`)).toBe('resourcequota/ceiling created\n')
    expect(await readStored('/resourcequotas/ceiling')).toMatchObject({
      metadata: { name: 'ceiling', namespace: 'shop' },
      spec: { hard },
    })
  })

  it('SYS-2 creates a service account', async () => {
    expect(await kubectl.out('create serviceaccount robot')).toBe('serviceaccount/robot created\n')
    expect(await readStored('/serviceaccounts/robot')).toEqual({
      kind: 'ServiceAccount',
      apiVersion: 'v1',
      metadata: { name: 'robot', namespace: 'shop' },
    })
  })

  it('SYS-2 creates nothing with --dry-run=server', async () => {
    const out = await kubectl.out('create cm ghost --from-literal=a=b --dry-run=server')
    expect(out).toBe('configmap/ghost created (server dry run)\n')
    expect(await server.call('GET', '/api/v1/namespaces/shop/configmaps/ghost')).toMatchObject({ status: 404 })
  })

  it('SYS-2 prints the reason if an object cannot be created', async () => {
    expect(await kubectl.expectError('create cm settings')).toBe(
      'error: failed to create configmap: configmaps "settings" already exists\n',
    )
    expect(await kubectl.expectError('create quota Bad_Name --hard=pods=1')).toContain('metadata.name')
  })

  it('SYS-2 describes the created objects', async () => {
    expect(collapse(await kubectl.out('describe ns shop'))).toContain('Name: ceiling')
    expect(collapse(await kubectl.out('describe cm settings'))).toContain('colour: ---- grün')
    expect(collapse(await kubectl.out('describe secret login'))).toContain('password: 7 bytes')
    expect(collapse(await kubectl.out('describe quota ceiling'))).toContain('Name: ceiling Namespace: shop')
    expect(collapse(await kubectl.out('describe sa robot'))).toContain('Name: robot')
  })

  it('SYS-2 shows events', async () => {
    const event = {
      metadata: { name: 'settings.1', namespace: 'shop' },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'settings' },
      reason: 'Repainted',
      message: 'now in green',
      type: 'Normal',
      lastTimestamp: '2026-01-01T00:00:00Z',
    }
    expect(await server.call('POST', '/api/v1/namespaces/shop/events', event)).toMatchObject({ status: 201 })
    expect(collapse(await kubectl.out('get events'))).toContain('Normal Repainted configmap/settings now in green')
    expect(collapse(await kubectl.out('events'))).toContain('Normal Repainted ConfigMap/settings now in green')
  })

  it('SYS-2 deletes the created objects', async () => {
    expect(await kubectl.out('delete cm/settings secret/login quota/ceiling sa/robot')).toBe(
      [
        'configmap "settings" deleted\n',
        'secret "login" deleted\n',
        'resourcequota "ceiling" deleted\n',
        'serviceaccount "robot" deleted\n',
      ].join(''),
    )
    expect(await server.call('GET', '/api/v1/namespaces/shop/secrets/login')).toMatchObject({ status: 404 })
    expect(await kubectl.out('delete ns shop')).toBe('namespace "shop" deleted\n')
  })
})
