// Checks the objects that the Kubernetes external storage tests require before their first test, and that examples/e2e describes
// the driver correctly. docs/how-to/e2e.md shows how to run the suite, which is not part of this repository.
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { connectDriver, readDriverFacts } from '../src/csi/index.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const EXAMPLE = new URL('../examples/e2e/', import.meta.url)
const readExample = async (name: string) => parse(await readFile(new URL(name, EXAMPLE), 'utf8'))

const kubectlProgram = (await findKubectls()).at(-1)
const skipMessage = kubectlProgram || process.env.CI ? undefined : 'kubectl is not installed'

describe.skipIf(skipMessage)(`the external storage tests${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-e2e-')))
    server = await startServer({
      dataDir: join(dir, 'data'),
      nodes: 1,
      flags: ['--pool-size', '1Gi', '--max-volumes-per-node', '8'],
    })
    kubectl = createKubectl({
      program: kubectlProgram!,
      kubeconfig: server.kubeconfig,
      namespace: 'default',
      home: dir,
    })
    await kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
  })
  afterAll(async () => {
    await server?.stop()
    if (dir) await rm(dir, { recursive: true, force: true })
  })

  it('PLUS-19 find the service, the account and the root certificate that they read before a test', async () => {
    expect((await kubectl.json('get service kubernetes')).spec.clusterIP).toBeDefined()
    const daemonSets = await kubectl.out('get --raw /apis/apps/v1/namespaces/kube-system/daemonsets')
    expect(JSON.parse(daemonSets).items).toEqual([])
    await kubectl.out('create namespace e2e-1')
    const names = () => kubectl.out('get serviceaccounts,configmaps -n e2e-1 -o name')
    await expect.poll(names, { timeout: 60_000 }).toBe('serviceaccount/default\nconfigmap/kube-root-ca.crt\n')
    const [node] = (await kubectl.json('get nodes')).items
    expect(node.spec.taints ?? []).toEqual([])
    await kubectl.out('delete namespace e2e-1')
  })

  it('PLUS-19 read an accurate description of the driver', async () => {
    const { DriverInfo, StorageClass, VolumeAttributesClass } = await readExample('driver.yaml')
    const storageClass = await readExample(StorageClass.FromFile)
    const attributesClass = await readExample(VolumeAttributesClass.FromFile)
    const csiDriver = await kubectl.json(`get csidriver ${DriverInfo.Name}`)
    const csiNode = (await kubectl.json('get csinodes')).items[0]
    const registered = csiNode.spec.drivers.find(({ name }: any) => name === DriverInfo.Name)
    const driver = connectDriver({
      address: join(dir, 'data', 'nodes', csiNode.metadata.name, 'csi.sock'),
      clock: systemClock(),
      log: silentLog,
    })
    const facts = await readDriverFacts(driver).finally(() => driver.close())
    const { Capabilities: described } = DriverInfo
    expect([storageClass.provisioner, attributesClass.driverName, facts.name]).toEqual(Array(3).fill(DriverInfo.Name))
    expect(facts.controller).toContain('MODIFY_VOLUME')
    expect(registered.topologyKeys).toEqual(DriverInfo.TopologyKeys)
    expect({
      capacity: facts.controller.has('GET_CAPACITY') && csiDriver.spec.storageCapacity,
      topology: facts.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
      controllerExpansion: facts.controller.has('EXPAND_VOLUME'),
      nodeExpansion: facts.node.has('EXPAND_VOLUME'),
      onlineExpansion: facts.expansion.has('ONLINE'),
      pvcDataSource: facts.controller.has('CLONE_VOLUME'),
      readWriteOncePod: facts.controller.has('SINGLE_NODE_MULTI_WRITER'),
      volumeLimits: registered.allocatable?.count === 8,
    }).toEqual({
      capacity: described.capacity,
      topology: described.topology,
      controllerExpansion: described.controllerExpansion,
      nodeExpansion: described.nodeExpansion,
      onlineExpansion: described.onlineExpansion,
      pvcDataSource: described.pvcDataSource,
      readWriteOncePod: described.readWriteOncePod,
      volumeLimits: described.volumeLimits,
    })
  })

  it('PLUS-19 read a description for one node that differs only in its class, its topology and its performance tests', async () => {
    const [driver, oneNode] = [await readExample('driver.yaml'), await readExample('one-node.yaml')]
    const [delayedClass, immediateClass] = [
      await readExample(driver.StorageClass.FromFile),
      await readExample(oneNode.StorageClass.FromFile),
    ]
    const { TopologyKeys, NumAllowedTopologies, Capabilities, ...info } = driver.DriverInfo
    const { topology, ...capabilities } = Capabilities
    const { PerformanceTestOptions, ...oneNodeInfo } = oneNode.DriverInfo
    expect(oneNodeInfo).toEqual({ ...info, Capabilities: capabilities })
    expect(PerformanceTestOptions.ProvisioningOptions.Count).toBeGreaterThan(0)
    expect(delayedClass.volumeBindingMode).toBe('WaitForFirstConsumer')
    expect({ ...immediateClass, metadata: {} }).toEqual({
      ...delayedClass,
      metadata: {},
      volumeBindingMode: 'Immediate',
    })
  })
})
