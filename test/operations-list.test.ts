// Tests operations end to end: a provisioner in its own process reports its operation to the server, kubectl lists, watches and
// describes it, a user of another namespace does not see it, and `stowage retry` ends its wait.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type RunningStowage, startStowage } from './helpers/stowage.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const program = (await findKubectls()).at(-1)
const DRIVER = 'disks.example.com'
const TIMEOUT_MS = 60_000

if (!program) it.skip('kubectl: not found; name one in STOWAGE_KUBECTLS')

describe.skipIf(!program)('operations of a provisioner in its own process', () => {
  let dir: string
  let server: RunningServer
  let driver: RunningFakeDriver
  let provisioner: RunningStowage
  let kubectl: Kubectl

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-operations-'))
    const home = join(dir, 'home')
    await mkdir(home)
    server = await startServer({ dataDir: join(dir, 'data') })
    driver = await startFakeDriver({ flags: ['--name', DRIVER] })
    await driver.control.setRules([
      { method: 'CreateVolume', effect: { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'the pool is full' } },
    ])
    provisioner = await startStowage({
      args: [
        ...['provisioner', '--csi-address', driver.endpoint, '--kubeconfig', server.kubeconfig],
        ...['--retry-interval-start', '5m', '--retry-interval-max', '5m'],
      ],
    })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'shop', home })
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await server.call('POST', '/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fake' },
      provisioner: DRIVER,
    })
    await server.call('POST', '/api/v1/namespaces/shop/persistentvolumeclaims', {
      metadata: { name: 'orders' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fake', resources: { requests: { storage: '1Gi' } } },
    })
  }, TIMEOUT_MS)
  afterAll(async () => {
    await provisioner?.stop()
    await driver?.remove()
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it(
    'PLUS-15 kubectl lists, watches and describes the operation, and stowage retry ends its wait',
    async () => {
      await vi.waitFor(async () => expect(await kubectl.out('get operations -A')).toContain('Retrying'), {
        timeout: TIMEOUT_MS,
        interval: 500,
      })
      const wideTable = await kubectl.out('get operations -A -o wide')
      expect(wideTable).toMatch(
        /^NAMESPACE +NAME +OBJECT +OPERATION +PHASE +REASON +ATTEMPTS +NEXT +AGE +MESSAGE +COMPONENT +PROCESS +DRIVER ANSWER +WAITS FOR/,
      )
      expect(wideTable).toMatch(
        /shop +orders\.[0-9a-f]{10} +PersistentVolumeClaim\/orders +Provision +Retrying +ResourceExhausted/,
      )
      expect(wideTable).toMatch(/provisioner +\S+@\S+:\d+ +CreateVolume: ResourceExhausted/)
      expect(await kubectl.out('describe operations')).toMatch(/Driver Answer:\s+Code:\s+ResourceExhausted/)
      const { json } = await server.call('GET', '/apis/stowage.dev/v1/namespaces/default/operations')
      expect(json.items.filter(({ object }: any) => object.name === 'orders')).toEqual([])

      await kubectl.out('create rolebinding ann --clusterrole=view --user=ann')
      await vi.waitFor(async () => expect(await kubectl.out('get operations --as=ann')).toContain('orders'), {
        timeout: TIMEOUT_MS,
        interval: 500,
      })
      expect(await kubectl.expectError('get operations -A --as=ann')).toContain('Forbidden')
      expect(await kubectl.expectError('get operations -n default --as=ann')).toContain('Forbidden')

      const watch = kubectl.follow('get operations -w --output-watch-events')
      await watch.line(/ADDED .*orders/)
      await driver.control.setRules([])
      const retryResult = await runStowage('retry', 'pvc/orders', '-n', 'shop', '--kubeconfig', server.kubeconfig)
      expect(retryResult.stdout).toContain('persistentvolumeclaim/orders in namespace shop: retry requested')
      expect(retryResult.stdout).toContain('Provision by provisioner (Retrying, ResourceExhausted)')
      await kubectl.out('wait pvc/orders --for=jsonpath={.status.phase}=Bound --timeout=60s')
      await watch.line(/DELETED .*orders/)
      await watch.stop()
      await vi.waitFor(async () => expect(await kubectl.out('get operations')).not.toContain('Provision'), {
        timeout: TIMEOUT_MS,
        interval: 500,
      })
    },
    TIMEOUT_MS * 3,
  )
})
