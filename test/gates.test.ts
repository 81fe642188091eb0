// Enables, disables and re-enables feature gates and API versions, as in the rollback plans of the design documents. The API
// server restarts on the same store with other flags while the controllers keep running in their own processes. The tests
// check the attributes in the driver as well as the status of the claim.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type RunningStowage, startStowage } from './helpers/stowage.ts'
import { createKubectl } from './kubectl/kubectl.ts'

const DRIVER = 'disks.example.com'
const STORAGE = '/apis/storage.k8s.io'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const MERGE = { 'content-type': 'application/merge-patch+json' }
const CLASSES_OFF = ['v1', 'v1beta1', 'v1alpha1']
  .map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
  .join(',')
const program = (await findKubectls()).at(-1)

describe('a cluster whose API server restarts with other flags', () => {
  let dir: string
  let driver: RunningFakeDriver
  let server: RunningServer
  let controllers: RunningStowage
  let sidecars: RunningStowage[] = []
  let startSidecars: () => Promise<RunningStowage[]>

  const start = async (...flags: string[]) => {
    const address = server ? ['--listen', `127.0.0.1:${new URL(server.url).port}`] : []
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags: [...address, ...flags] })
  }
  const restart = async (...flags: string[]) => {
    await server.stop()
    await start(...flags)
  }
  /** Polls until the test's own timeout. */
  async function until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const claim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const change = (name: string, spec: object) => server.call('PATCH', `${CLAIMS}/${name}`, { spec }, MERGE)
  /** The attributes that the driver applies to the claim's volume. */
  const attributesOf = async (name: string) => {
    const { spec } = await claim(name)
    const { json } = await server.call('GET', `/api/v1/persistentvolumes/${spec.volumeName}`)
    expect(json.status.phase).toBe('Bound')
    const { state } = await driver.control.inspect()
    return state.volumes[json.spec.csi.volumeHandle]!.mutableParameters
  }
  const isInEffect = async (name: string, className: string) => {
    const { status } = await claim(name)
    return status?.currentVolumeAttributesClassName === className && !status.modifyVolumeStatus
  }
  const aClaim = (name: string, spec: object = {}) =>
    server.call('POST', CLAIMS, {
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'disks',
        resources: { requests: { storage: '1Gi' } },
        ...spec,
      },
    })
  const untilBound = (name: string) => until(async () => (await claim(name)).status?.phase === 'Bound')
  const kubectl = () =>
    createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-gates-'))
    driver = await startFakeDriver({ flags: ['--name', DRIVER] })
    await start()
    const common = ['--kubeconfig', server.kubeconfig, '--log-level', 'info']
    const flags = [...common, '--csi-address', driver.endpoint, '--kube-api-qps', '-1', '--retry-interval-max', '2s']
    startSidecars = () =>
      Promise.all(['provisioner', 'resizer'].map((program) => startStowage({ args: [program, ...flags] })))
    controllers = await startStowage({ args: ['controllers', ...common, '--no-leader-election'] })
    sidecars = await startSidecars()
    await server.call('POST', `${STORAGE}/v1/storageclasses`, { metadata: { name: 'disks' }, provisioner: DRIVER })
    for (const [name, iops] of [
      ['vac1', '100'],
      ['vac2', '200'],
    ]) {
      // Created through v1beta1, the version of the design document; every version serves the same object.
      const body = { metadata: { name }, driverName: DRIVER, parameters: { iops } }
      await server.call('POST', `${STORAGE}/v1beta1/volumeattributesclasses`, body)
    }
  })
  afterAll(async () => {
    await Promise.all([controllers, ...sidecars].map((one) => one?.stop()))
    await server?.stop()
    await driver?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  it('VAC-12 SYS-15 rejects class changes with the gate off, returns 404 with the API off, and modifies once both are on', async () => {
    // 1. Everything on: created with one class, modified to another.
    await aClaim('test-pvc', { volumeAttributesClassName: 'vac1' })
    await untilBound('test-pvc')
    expect(await attributesOf('test-pvc')).toEqual({ iops: '100' })
    expect((await change('test-pvc', { volumeAttributesClassName: 'vac2' })).status).toBe(200)
    await until(() => isInEffect('test-pvc', 'vac2'))
    expect(await attributesOf('test-pvc')).toEqual({ iops: '200' })
    const before = await claim('test-pvc')

    // 2. Gate off: changing the class is rejected; the volume keeps its attributes.
    await restart('--feature-gates', 'VolumeAttributesClass=false')
    const refused = await change('test-pvc', { volumeAttributesClassName: 'vac1' })
    const reason =
      'spec.volumeAttributesClassName: Forbidden: update is forbidden when the VolumeAttributesClass feature gate is disabled'
    expect([refused.status, refused.json.message]).toEqual([
      422,
      `PersistentVolumeClaim "test-pvc" is invalid: ${reason}`,
    ])
    if (program) {
      const patch = '{"spec":{"volumeAttributesClassName":"vac1"}}'
      expect(await kubectl().refusal(['patch', 'pvc', 'test-pvc', '-p', patch])).toContain(
        `The PersistentVolumeClaim "test-pvc" is invalid: ${reason}`,
      )
    }
    expect(await attributesOf('test-pvc')).toEqual({ iops: '200' })

    // 3. API off as well: classes return 404; all other resources are served.
    await restart('--feature-gates', 'VolumeAttributesClass=false', '--runtime-config', CLASSES_OFF)
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      const listed = await server.call('GET', `${STORAGE}/${version}/volumeattributesclasses`)
      expect([listed.status, listed.json.message]).toEqual([404, 'the server could not find the requested resource'])
    }
    if (program) {
      expect(await kubectl().refusal('get volumeattributesclasses.v1beta1.storage.k8s.io')).toMatch(
        /the server (could not find the requested resource|doesn't have a resource type)/,
      )
    }
    const now = await claim('test-pvc')
    expect([now.spec, now.status]).toEqual([before.spec, before.status])
    expect(await attributesOf('test-pvc')).toEqual({ iops: '200' })
    await aClaim('plain')
    await untilBound('plain') // a claim without a class is provisioned

    // 4. Both on again: the classes are served, and the volume is modified.
    await restart()
    const { items } = (await server.call('GET', `${STORAGE}/v1/volumeattributesclasses`)).json
    expect(items.map(({ metadata }: any) => metadata.name)).toEqual(['vac1', 'vac2'])
    expect((await change('test-pvc', { volumeAttributesClassName: 'vac1' })).status).toBe(200)
    await until(() => isInEffect('test-pvc', 'vac1'))
    expect(await attributesOf('test-pvc')).toEqual({ iops: '100' })
  })

  it('SYS-15 with the gate on and the API off, keeps a class change pending and applies it once the API is served', async () => {
    await aClaim('patient', { volumeAttributesClassName: 'vac1' })
    await untilBound('patient')
    await Promise.all(sidecars.map((one) => one.stop())) // restarted below: their caches still contain the classes
    await restart('--runtime-config', CLASSES_OFF)
    sidecars = await startSidecars()
    expect((await change('patient', { volumeAttributesClassName: 'vac2' })).status).toBe(200)
    await aClaim('newcomer', { volumeAttributesClassName: 'vac1' })
    await until(async () => {
      const path = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=newcomer'
      const { items } = (await server.call('GET', path)).json
      return items.some(({ message }: any) =>
        message.includes('VolumeAttributesClass "vac1" of the claim could not be read'),
      )
    })
    expect(await attributesOf('patient')).toEqual({ iops: '100' })
    expect((await claim('newcomer')).status.phase).toBe('Pending') // no volume with other attributes is provisioned
    await restart()
    await until(() => isInEffect('patient', 'vac2'))
    expect(await attributesOf('patient')).toEqual({ iops: '200' })
    await untilBound('newcomer')
    expect(await attributesOf('newcomer')).toEqual({ iops: '100' })
  })

  it('PIO-1 rejects iops changes with the gate off, keeps the volume unchanged, and applies changes once the gate is on', async () => {
    const requestIops = (iops: string) => change('fast', { resources: { requests: { iops } } })
    await aClaim('fast', { resources: { requests: { storage: '1Gi', iops: '500' } } })
    await untilBound('fast')
    expect(await attributesOf('fast')).toEqual({ iops: '500' })
    await requestIops('600')
    await until(async () => (await attributesOf('fast')).iops === '600')
    await restart('--feature-gates', 'VolumeProvisionedIO=false')
    const refused = await requestIops('700')
    expect([refused.status, refused.json.message]).toEqual([
      422,
      'PersistentVolumeClaim "fast" is invalid: spec.resources.requests.iops: Forbidden: update is forbidden when the ' +
        'VolumeProvisionedIO feature gate is disabled',
    ])
    expect(await attributesOf('fast')).toEqual({ iops: '600' })
    await restart()
    expect((await requestIops('700')).status).toBe(200)
    await until(async () => (await attributesOf('fast')).iops === '700')
  })

  it('SYS-15 refuses to start with the core version disabled', async () => {
    const attempt = startServer({ dataDir: join(dir, 'refused'), flags: ['--runtime-config', 'v1=false'] })
    await expect(attempt).rejects.toThrow(
      /v1 cannot be disabled: it is the only version of namespaces, claims and volumes/,
    )
  })
})
