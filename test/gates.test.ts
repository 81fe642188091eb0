// Tests feature gates and API versions that are disabled and enabled again: the API server restarts on the same store with
// other flags, and controllers run in their own processes.
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
const CLASSES_DISABLED = ['v1', 'v1beta1', 'v1alpha1']
  .map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
  .join(',')
const kubectlProgram = (await findKubectls()).at(-1)

describe('an API server with feature gates and API versions', () => {
  let dir: string
  let driver: RunningFakeDriver
  let server: RunningServer
  let controllers: RunningStowage
  let sidecars: RunningStowage[] = []
  let startSidecars: () => Promise<RunningStowage[]>

  const startApiServer = async (...flags: string[]) => {
    const address = server ? ['--listen', `127.0.0.1:${new URL(server.url).port}`] : []
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags: [...address, ...flags] })
  }
  const restartApiServer = async (...flags: string[]) => {
    await server.stop()
    await startApiServer(...flags)
  }
  /** Polls until the condition is true or the test times out. */
  async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const getClaim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const patchClaim = (name: string, spec: object) => server.call('PATCH', `${CLAIMS}/${name}`, { spec }, MERGE)
  /** Returns the attributes that the driver applied to the claim's volume. */
  const getAttributes = async (name: string) => {
    const { spec } = await getClaim(name)
    const { json } = await server.call('GET', `/api/v1/persistentvolumes/${spec.volumeName}`)
    expect(json.status.phase).toBe('Bound')
    const { state } = await driver.control.inspect()
    return state.volumes[json.spec.csi.volumeHandle]!.mutableParameters
  }
  const isClassInEffect = async (name: string, className: string) => {
    const { status } = await getClaim(name)
    return status?.currentVolumeAttributesClassName === className && !status.modifyVolumeStatus
  }
  const createClaim = (name: string, spec: object = {}) =>
    server.call('POST', CLAIMS, {
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'disks',
        resources: { requests: { storage: '1Gi' } },
        ...spec,
      },
    })
  const waitUntilBound = (name: string) => pollUntil(async () => (await getClaim(name)).status?.phase === 'Bound')
  const createAdminKubectl = () =>
    createKubectl({ program: kubectlProgram!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-gates-'))
    driver = await startFakeDriver({ flags: ['--name', DRIVER] })
    await startApiServer()
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
    await Promise.all([controllers, ...sidecars].map((process) => process?.stop()))
    await server?.stop()
    await driver?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  it('VAC-12 SYS-15 rejects class changes with the gate off, returns 404 with the API off, and modifies once both are on', async () => {
    // 1. Gate and API on: the claim is created with one class and changed to another.
    await createClaim('test-pvc', { volumeAttributesClassName: 'vac1' })
    await waitUntilBound('test-pvc')
    expect(await getAttributes('test-pvc')).toEqual({ iops: '100' })
    expect((await patchClaim('test-pvc', { volumeAttributesClassName: 'vac2' })).status).toBe(200)
    await pollUntil(() => isClassInEffect('test-pvc', 'vac2'))
    expect(await getAttributes('test-pvc')).toEqual({ iops: '200' })
    const claimBefore = await getClaim('test-pvc')

    // 2. Gate off: a change to the class is rejected, and the volume keeps its attributes.
    await restartApiServer('--feature-gates', 'VolumeAttributesClass=false')
    const rejectedResponse = await patchClaim('test-pvc', { volumeAttributesClassName: 'vac1' })
    const reason =
      'spec.volumeAttributesClassName: Forbidden: update is forbidden when the VolumeAttributesClass feature gate is disabled'
    expect([rejectedResponse.status, rejectedResponse.json.message]).toEqual([
      422,
      `PersistentVolumeClaim "test-pvc" is invalid: ${reason}`,
    ])
    if (kubectlProgram) {
      const patch = '{"spec":{"volumeAttributesClassName":"vac1"}}'
      expect(await createAdminKubectl().expectError(['patch', 'pvc', 'test-pvc', '-p', patch])).toContain(
        `The PersistentVolumeClaim "test-pvc" is invalid: ${reason}`,
      )
    }
    expect(await getAttributes('test-pvc')).toEqual({ iops: '200' })

    // 3. API off as well: classes return 404, and claims are served and provisioned.
    await restartApiServer('--feature-gates', 'VolumeAttributesClass=false', '--runtime-config', CLASSES_DISABLED)
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      const listResponse = await server.call('GET', `${STORAGE}/${version}/volumeattributesclasses`)
      expect([listResponse.status, listResponse.json.message]).toEqual([
        404,
        'the server could not find the requested resource',
      ])
    }
    if (kubectlProgram) {
      expect(await createAdminKubectl().expectError('get volumeattributesclasses.v1beta1.storage.k8s.io')).toMatch(
        /the server (could not find the requested resource|doesn't have a resource type)/,
      )
    }
    const currentClaim = await getClaim('test-pvc')
    expect([currentClaim.spec, currentClaim.status]).toEqual([claimBefore.spec, claimBefore.status])
    expect(await getAttributes('test-pvc')).toEqual({ iops: '200' })
    await createClaim('plain')
    await waitUntilBound('plain') // a claim without a class is provisioned

    // 4. Gate and API on again: the classes are served, and the volume is modified.
    await restartApiServer()
    const { items } = (await server.call('GET', `${STORAGE}/v1/volumeattributesclasses`)).json
    expect(items.map(({ metadata }: any) => metadata.name)).toEqual(['vac1', 'vac2'])
    expect((await patchClaim('test-pvc', { volumeAttributesClassName: 'vac1' })).status).toBe(200)
    await pollUntil(() => isClassInEffect('test-pvc', 'vac1'))
    expect(await getAttributes('test-pvc')).toEqual({ iops: '100' })
  })

  it('SYS-15 keeps a class change pending with the gate on and the API off, and applies it once the API is served', async () => {
    await createClaim('existing', { volumeAttributesClassName: 'vac1' })
    await waitUntilBound('existing')
    await Promise.all(sidecars.map((sidecar) => sidecar.stop())) // new processes start with empty caches
    await restartApiServer('--runtime-config', CLASSES_DISABLED)
    sidecars = await startSidecars()
    expect((await patchClaim('existing', { volumeAttributesClassName: 'vac2' })).status).toBe(200)
    await createClaim('new', { volumeAttributesClassName: 'vac1' })
    await pollUntil(async () => {
      const path = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=new'
      const { items } = (await server.call('GET', path)).json
      return items.some(({ message }: any) =>
        message.includes('VolumeAttributesClass "vac1" of the claim could not be read'),
      )
    })
    expect(await getAttributes('existing')).toEqual({ iops: '100' })
    expect((await getClaim('new')).status.phase).toBe('Pending') // not provisioned without its class's attributes
    await restartApiServer()
    await pollUntil(() => isClassInEffect('existing', 'vac2'))
    expect(await getAttributes('existing')).toEqual({ iops: '200' })
    await waitUntilBound('new')
    expect(await getAttributes('new')).toEqual({ iops: '100' })
  })

  it('PIO-1 rejects iops changes with the gate off, keeps the volume unchanged, and applies changes once the gate is on', async () => {
    const requestIops = (iops: string) => patchClaim('fast', { resources: { requests: { iops } } })
    await createClaim('fast', { resources: { requests: { storage: '1Gi', iops: '500' } } })
    await waitUntilBound('fast')
    expect(await getAttributes('fast')).toEqual({ iops: '500' })
    await requestIops('600')
    await pollUntil(async () => (await getAttributes('fast')).iops === '600')
    await restartApiServer('--feature-gates', 'VolumeProvisionedIO=false')
    const rejectedResponse = await requestIops('700')
    expect([rejectedResponse.status, rejectedResponse.json.message]).toEqual([
      422,
      'PersistentVolumeClaim "fast" is invalid: spec.resources.requests.iops: Forbidden: update is forbidden when the ' +
        'VolumeProvisionedIO feature gate is disabled',
    ])
    expect(await getAttributes('fast')).toEqual({ iops: '600' })
    await restartApiServer()
    expect((await requestIops('700')).status).toBe(200)
    await pollUntil(async () => (await getAttributes('fast')).iops === '700')
  })

  it('fails to start if --runtime-config names an API version that does not exist', async () => {
    const attempt = startServer({
      dataDir: join(dir, 'unknown-version'),
      flags: ['--runtime-config', 'storage.k8s.io/v9=false'],
    })
    await expect(attempt).rejects.toThrow(/there is no "storage\.k8s\.io\/v9"/)
  })

  it('fails to start if core/v1 is disabled', async () => {
    const attempt = startServer({ dataDir: join(dir, 'disabled-v1'), flags: ['--runtime-config', 'v1=false'] })
    await expect(attempt).rejects.toThrow(
      /v1 cannot be disabled: it is the only version of namespaces, claims and volumes/,
    )
  })
})
