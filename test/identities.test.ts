// Runs the whole life of claims with `stowage up` and kubectl, and checks that every component has the rights it needs: the
// server counts and logs denied requests of its own components.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const program = (await findKubectls()).at(-1)
const DRIVER = 'local.csi.stowage.dev'

describe.skipIf(!program && process.env.CI !== 'true')('the identities of components (needs a kubectl on PATH)', () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  let kubectl: Kubectl
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-identities-')))
    await mkdir(join(dir, 'data'))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '2Gi'] })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })
  })
  afterAll(async () => {
    await server?.kill()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  const apply = (...items: object[]) =>
    kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) })
  const waitFor = (object: string, condition: string) =>
    kubectl.out(['wait', object, `--for=${condition}`, '--timeout=60s'])
  const claimOf = (name: string, spec: object = {}) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } }, ...spec },
  })
  const podOf = (name: string, claimName: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
  })

  it('SYS-9 suffice to create, use, expand, modify, copy and delete claims', async () => {
    const attributes = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttributesClass', driverName: DRIVER }
    await apply({ ...attributes, metadata: { name: 'gold' }, parameters: { iops: '500' } })
    await apply(claimOf('orders'), podOf('shop', 'orders'))
    await waitFor('pod/shop', 'jsonpath={.status.phase}=Running')
    await kubectl.out(['patch', 'pvc', 'orders', '-p', '{"spec":{"resources":{"requests":{"storage":"512Mi"}}}}'])
    await waitFor('pvc/orders', 'jsonpath={.status.capacity.storage}=512Mi')
    await kubectl.out(['patch', 'pvc', 'orders', '-p', '{"spec":{"volumeAttributesClassName":"gold"}}'])
    await waitFor('pvc/orders', 'jsonpath={.status.currentVolumeAttributesClassName}=gold')
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'orders' }
    const copySpec = { dataSource, resources: { requests: { storage: '512Mi' } } }
    await apply(claimOf('copy', copySpec), podOf('reader', 'copy'))
    await waitFor('pod/reader', 'jsonpath={.status.phase}=Running')
    await kubectl.out('delete pod shop reader')
    await kubectl.out('delete pvc orders copy')
    await kubectl.out('delete volumeattributesclass gold')
    await kubectl.out('create namespace temporary')
    await kubectl.out('delete namespace temporary')
    const { text } = await server.call('GET', '/metrics')
    expect(text).toContain('# TYPE stowage_missing_rights gauge')
    expect(text.split('\n').filter((line) => line.startsWith('stowage_missing_rights'))).toEqual([])
    expect(await server.stop()).toBe(0) // fails if the log reports a missing right
  }, 120_000)
})
