// Provisions claims with `stowage up`, kubectl, and a CSI driver in its own process.
import { access, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const DRIVER = 'disks.example.com'
const program = (await findKubectls()).at(-1)

describe.skipIf(!program && process.env.CI !== 'true')('provisioning with kubectl (needs a kubectl on PATH)', () => {
  let dir: string
  let driver: RunningFakeDriver
  let server: RunningServer
  let kubectl: Kubectl

  const start = async () => {
    const flags = ['--driver-socket', driver.endpoint]
    server = await startServer({ dataDir: join(dir, 'data'), flags })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })
  }
  const apply = (...objects: object[]) =>
    kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }) })
  const waitUntilBound = (...names: string[]) =>
    kubectl.out([
      'wait',
      ...names.map((name) => `pvc/${name}`),
      '--for=jsonpath={.status.phase}=Bound',
      '--timeout=60s',
    ])
  const getVolume = async (claim: string) => {
    const { spec } = await kubectl.json(`get pvc ${claim}`)
    return kubectl.json(`get pv ${spec.volumeName}`)
  }
  /** Polls until the condition is true or the test times out. */
  async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const listDriverVolumes = async () => Object.values((await driver.control.inspect()).state.volumes)

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-claims-'))
    driver = await startFakeDriver({ flags: ['--name', DRIVER] })
    await start()
  })
  afterAll(async () => {
    await server?.stop()
    await driver?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  it('provisions a directory for a claim of the class `directory` on a new data directory', async () => {
    await apply(aClaim('orders', { storageClassName: 'directory' }))
    await waitUntilBound('orders')
    const { spec } = await getVolume('orders')
    expect(spec.storageClassName).toBe('directory')
    await access(spec.hostPath.path)
    await kubectl.out('delete pvc orders')
    await pollUntil(async () => (await readdir(join(dir, 'data', 'volumes'))).every((name) => name.startsWith('.')))
    expect((await kubectl.json('get pv')).items).toEqual([])
  })

  it('PROV-9 PROV-14 creates a volume with a driver in its own process, and deletes it with the claim', async () => {
    await apply(aClass('disks'), aClaim('books', { storageClassName: 'disks' }))
    await waitUntilBound('books')
    const { spec, metadata } = await getVolume('books')
    expect(metadata.annotations['pv.kubernetes.io/provisioned-by']).toBe(DRIVER)
    expect((await listDriverVolumes()).map(({ id }) => id)).toEqual([spec.csi.volumeHandle])
    await kubectl.out('delete pvc books')
    await pollUntil(async () => (await kubectl.json('get pv')).items.length === 0)
    expect(await listDriverVolumes()).toEqual([])
  })

  it('PROV-15 keeps the volume and its storage with the policy Retain', async () => {
    await apply(aClass('kept', { reclaimPolicy: 'Retain' }), aClaim('archive', { storageClassName: 'kept' }))
    await waitUntilBound('archive')
    const { metadata } = await getVolume('archive')
    await kubectl.out('delete pvc archive')
    await kubectl.out(['wait', `pv/${metadata.name}`, '--for=jsonpath={.status.phase}=Released', '--timeout=60s'])
    expect(await listDriverVolumes()).toHaveLength(1)
    await kubectl.out(['patch', 'pv', metadata.name, '-p', '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'])
    await pollUntil(async () => (await listDriverVolumes()).length === 0)
  })

  it('PROV-6 PROV-9 reports a driver error and a missing class in events on the claim, and then provisions the claim', async () => {
    await driver.control.setRules([
      { method: 'CreateVolume', effect: { do: 'fail', code: 'OUT_OF_RANGE', message: 'at most 5Gi' } },
    ])
    await apply(aClaim('huge', { storageClassName: 'disks' }), aClaim('typo', { storageClassName: 'disk' }))
    const listWarnings = async (claim: string) =>
      (await kubectl.json(`get events --field-selector involvedObject.name=${claim},type=Warning`)).items
        .map(({ reason, message }: { reason: string; message: string }) => `${reason}: ${message}`)
        .join('\n')
    await pollUntil(async () => (await listWarnings('huge')).includes('at most 5Gi'))
    await pollUntil(async () => (await listWarnings('typo')).includes('storageclass.storage.k8s.io "disk" not found'))
    await driver.control.setRules([])
    await apply(aClass('disk'))
    await waitUntilBound('typo', 'huge')
    await kubectl.out('delete pvc typo huge')
    await pollUntil(async () => (await listDriverVolumes()).length === 0)
  })

  it('PROV-12 neither leaks nor loses volumes if the server and the driver are killed during creates and deletes', async () => {
    const names = Array.from({ length: 24 }, (_, index) => `burst-${index}`)
    for (const [round, chunk] of splitIntoChunks(names, 6).entries()) {
      await apply(...chunk.map((name) => aClaim(name, { storageClassName: 'disks' })))
      if (round % 2 === 0) {
        await server.kill()
        await start()
      } else {
        await driver.kill()
        await driver.start()
      }
      await kubectl.out(`delete pvc ${chunk[0]} --wait=false`)
    }
    const remainingClaims = names.filter((_, index) => index % 6 !== 0)
    await waitUntilBound(...remainingClaims)
    await pollUntil(async () => (await listDriverVolumes()).length === remainingClaims.length)
    const volumes = (await kubectl.json('get pv')).items as { spec: any; status: any }[]
    expect(volumes.map(({ status }) => status.phase)).toEqual(remainingClaims.map(() => 'Bound'))
    expect(new Set(volumes.map(({ spec }) => spec.csi.volumeHandle))).toEqual(
      new Set((await listDriverVolumes()).map(({ id }) => id)),
    )
    expect((await driver.control.inspect()).overlaps).toEqual([])
    await kubectl.out(`delete pvc ${remainingClaims.join(' ')}`)
    await pollUntil(
      async () => (await listDriverVolumes()).length === 0 && (await kubectl.json('get pv')).items.length === 0,
    )
  })
})

const aClaim = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
})

const aClass = (name: string, fields: object = {}) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name },
  provisioner: DRIVER,
  ...fields,
})

const splitIntoChunks = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))
