import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { BIND_COMPLETED, LAST_FAILURE, SELECTED_NODE } from '../../../volumes/names.ts'
import {
  DRIVER,
  gi,
  HOST,
  type SchedulerFixture,
  type SchedulerFixtureOptions,
  startSchedulerFixture,
} from '../../scheduler.fixture.ts'

let fixture: SchedulerFixture
const start = async (options?: SchedulerFixtureOptions) => {
  fixture = await startSchedulerFixture(options)
}
beforeEach(() => start())
afterEach(() => fixture.stop())
const restartWith = async (options: SchedulerFixtureOptions) => {
  await fixture.stop()
  await start(options)
}

const nodeTopologyOf = (name: string) => ({ nodeTopology: { matchLabels: { [HOST]: name } } })
const nodeAffinityOf = (name: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values: [name] }] }] },
  },
})
const waitUntilBound = (pod: string) => fixture.waitUntil(() => fixture.nodeOf(pod), `${pod} to have a node`)
const waitUntilUnschedulable = (pod: string) => fixture.waitUntil(() => fixture.message(pod), `the condition of ${pod}`)
/** Delays the driver calls that create volumes until `release` is called. */
function holdProvisioning() {
  const pendingCalls: (() => void)[] = []
  fixture.storage.beforeCreate = () => new Promise<void>((resolve) => void pendingCalls.push(resolve))
  return {
    waitUntilStarted: () => fixture.waitUntil(() => pendingCalls.length > 0, 'the driver call'),
    release() {
      fixture.storage.beforeCreate = async () => {}
      for (const finish of pendingCalls) finish()
    },
  }
}
const NO_SPACE = 'node(s) did not have enough free storage'
const NO_VOLUME = "node(s) didn't find available persistent volumes to bind"

/** Creates nodes n1, n2 … with these sizes in Gi of local storage, reported for the class `local`. */
async function createLocalStorage(sizes: readonly number[] = [100, 50, 10]) {
  await fixture.createDriver()
  await fixture.createClass('local')
  for (const [index, size] of sizes.entries()) {
    const name = `n${index + 1}`
    await fixture.createNode(name)
    await fixture.createCapacity(`c-${name}`, { ...nodeTopologyOf(name), capacity: `${size}Gi` })
    fixture.storage.freeBytes.set(name, gi(size))
  }
}

/** Returns every order of the items. */
const permutations = <T>(items: readonly T[]): T[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((tail) => [item, ...tail]))

describe('VolumeBinding with topology labels', () => {
  const LABELS_MISSING = 'node(s) lacked topology labels that their CSI driver has registered'
  const registerKeys = (name: string, topologyKeys: string[]) =>
    fixture.client.create(csiNodeKind, {
      metadata: { name },
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys }] },
    } as never)

  it('does not select a node that lacks a topology label of the driver, and selects it when the label is set', async () => {
    await fixture.createClass('local')
    await fixture.createNode('n1', { hasDriver: false })
    await registerKeys('n1', ['topology.example.com/zone'])
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createClaim('data', { storageClassName: 'local' })
    await fixture.createPod('web', { claims: ['data'] })
    await waitUntilUnschedulable('web')
    expect(await fixture.message('web')).toContain(LABELS_MISSING)
    expect((await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBeUndefined()
    await fixture.client.patch(
      nodeKind,
      { name: 'n1' },
      { type: 'merge', body: { metadata: { labels: { 'topology.example.com/zone': 'east' } } } },
    )
    await waitUntilBound('web')
  })

  it('selects the node when the driver no longer registers the key', async () => {
    await fixture.createClass('local')
    await fixture.createNode('n1', { hasDriver: false })
    await registerKeys('n1', ['topology.example.com/zone'])
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createClaim('data', { storageClassName: 'local' })
    await fixture.createPod('web', { claims: ['data'] })
    await waitUntilUnschedulable('web')
    await fixture.client.delete(csiNodeKind, { name: 'n1' })
    await registerKeys('n1', [])
    await waitUntilBound('web')
  })
})

describe('VolumeBinding', () => {
  it('CAP-13 selects the node of a delayed claim, waits for its volume, and binds the pod', async () => {
    await createLocalStorage()
    await fixture.createClaim('data', { size: '80Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n1')
    const claim = await fixture.claim('data')
    expect(claim.metadata.annotations?.[SELECTED_NODE]).toBe('n1')
    expect(claim.status?.phase).toBe('Bound')
    expect(fixture.storage.rejectedRequests).toEqual([])
  })

  it('CAP-11 rejects nodes without sufficient or known capacity for the class', async () => {
    await fixture.createDriver()
    await fixture.createClass('local')
    for (const name of ['small', 'other', 'maximum', 'zero', 'unknown', 'silent']) await fixture.createNode(name)
    await fixture.createCapacity('c1', { ...nodeTopologyOf('small'), capacity: '9Gi' })
    await fixture.createCapacity('c2', { ...nodeTopologyOf('other'), storageClassName: 'another', capacity: '100Gi' })
    await fixture.createCapacity('c3', { ...nodeTopologyOf('maximum'), capacity: '100Gi', maximumVolumeSize: '5Gi' })
    await fixture.createCapacity('c4', { ...nodeTopologyOf('zero'), capacity: '0' })
    await fixture.createCapacity('c5', { ...nodeTopologyOf('unknown') })
    await fixture.createCapacity('c6', { capacity: '100Gi' })
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(
      `0/6 nodes are available: 6 ${NO_SPACE}. ` +
        'A volume of 10Gi of class "local" is requested, but at most 9Gi is free on any node.',
    )
  })

  it('PLUS-3 reuses the capacity of a pod that was created and deleted between two reports', async () => {
    await createLocalStorage([10])
    await fixture.createPod('first', { ephemeral: { scratch: { size: '8Gi', storageClassName: 'local' } } })
    await waitUntilBound('first')
    await fixture.createPod('second', { ephemeral: { scratch: { size: '8Gi', storageClassName: 'local' } } })
    await fixture.waitUntil(
      async () => (await fixture.message('second'))?.includes(NO_SPACE),
      'the condition of second',
    )
    const deletedAtMs = fixture.server.clock.monotonicMs()
    // The test deletes the pod's claim, because no garbage collector runs. No report has changed.
    await fixture.client.delete(podKind, { namespace: 'default', name: 'first' }, { gracePeriodSeconds: 0 })
    await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'first-scratch' })
    await waitUntilBound('second')
    expect(fixture.server.clock.monotonicMs() - deletedAtMs).toBeLessThan(15_000)
    expect(fixture.storage.rejectedRequests).toEqual([])
  })

  it('CAP-11 names the class for which no capacity is reported', async () => {
    await fixture.createDriver()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toContain('No capacity is reported for class "local" on any node.')
  })

  it.each([
    ['the driver sets storageCapacity to false', () => fixture.createDriver(false)],
    ['the driver has no CSIDriver object', async () => {}],
  ])('CAP-2 does not check capacity if %s', async (_, createDriver) => {
    await createDriver()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    fixture.storage.freeBytes.set('n1', gi(100))
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
  })

  it('CAP-13 backs off a pod whose driver has no space and does not track capacity', async () => {
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    const { clock } = fixture.server
    const rejectedAtMs: number[] = []
    await fixture.waitUntil(() => {
      const count = fixture.storage.rejectedRequests.length
      if (count > rejectedAtMs.length) rejectedAtMs.push(clock.monotonicMs())
      return count >= 8
    }, 'eight rejections')
    const pauses = rejectedAtMs.slice(1).map((ms, index) => ms - rejectedAtMs[index]!)
    expect(pauses.slice(-3).every((ms) => ms >= 5_000)).toBe(true)
    fixture.storage.freeBytes.set('n1', gi(10))
    await waitUntilBound('db')
  })

  it('CAP-12 CAP-13 includes the error of the driver in the pod’s message, even after every node was rejected', async () => {
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    const driverError = 'node "n1": rpc error: code = ResourceExhausted desc = full'
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(
      `running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data": ${driverError}`,
    )
    const cordon = { type: 'merge', body: { spec: { unschedulable: true } } } as const
    await fixture.client.patch(nodeKind, { name: 'n1' }, cordon)
    await fixture.waitUntil(async () => (await fixture.message('db'))?.startsWith('0/1'), 'the second message')
    expect(await fixture.message('db')).toBe(
      `0/1 nodes are available: 1 node(s) were unschedulable. The volume of claim "data" could not be created: ${driverError}.`,
    )
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.client.patch(nodeKind, { name: 'n1' }, { ...cordon, body: { spec: { unschedulable: null } } })
    await waitUntilBound('db')
    expect((await fixture.claim('data')).metadata.annotations).not.toHaveProperty([LAST_FAILURE])
  })

  it('CAP-6 CAP-12 adds the failure that a capacity producer records on the claim to the pod’s message', async () => {
    await fixture.createDriver()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    const message = 'GetCapacity for class "local" failed: Unknown class parameter "fsTyp"'
    const body = { metadata: { annotations: { [LAST_FAILURE]: message } } }
    const ref = { namespace: 'default', name: 'data' }
    await fixture.client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })
    await fixture.waitUntil(async () => (await fixture.message('db'))?.includes('GetCapacity'), 'the failure')
    expect(await fixture.message('db')).toBe(
      `0/1 nodes are available: 1 ${NO_SPACE}. No capacity is reported for class "local" on any node. ` +
        `The volume of claim "data" could not be created: ${message}.`,
    )
  })

  it('CAP-18 ignores CSIStorageCapacity objects and storageCapacity if the feature gate is disabled', async () => {
    await restartWith({ gates: 'CSIStorageCapacity=false' })
    await createLocalStorage([1])
    fixture.storage.freeBytes.set('n1', gi(100))
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
  })

  it('CAP-15 applies a report with an empty topology to every node', async () => {
    await fixture.createDriver()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createCapacity('everywhere', { nodeTopology: {}, capacity: '20Gi' })
    fixture.storage.freeBytes.set('n1', gi(20))
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
  })

  it('CAP-12 retries the pod when the driver sets storageCapacity to false', async () => {
    await createLocalStorage([1])
    fixture.storage.freeBytes.set('n1', gi(100))
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    const body = { spec: { storageCapacity: false } }
    await fixture.client.patch(csiDriverKind, { name: DRIVER }, { type: 'merge', body })
    await waitUntilBound('db')
  })

  it("CAP-12 retries when a new node's capacity is reported, but not when the node is added", async () => {
    await fixture.createDriver()
    await fixture.createClass('local')
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe('no nodes available to schedule pods')
    const { attempts } = fixture.scheduler
    await fixture.createNode('n1')
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.settle()
    expect(fixture.scheduler.attempts).toBe(attempts)
    await fixture.createCapacity('c-n1', { ...nodeTopologyOf('n1'), capacity: '10Gi' })
    await waitUntilBound('db')
    expect(fixture.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-12 retries when an uncordoned node reports sufficient capacity', async () => {
    await createLocalStorage([5])
    const cordon = (isCordoned: boolean | null) => {
      const body = { spec: { unschedulable: isCordoned } }
      return fixture.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body })
    }
    await cordon(true)
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await fixture.createClaim('more', { size: '10Gi' })
    await fixture.createPod('same-class', { claims: ['more'] })
    await waitUntilUnschedulable('db')
    await waitUntilUnschedulable('same-class')
    await cordon(null)
    await fixture.settle()
    fixture.storage.freeBytes.set('n1', gi(20))
    const ref = { namespace: 'default', name: 'c-n1' }
    await fixture.client.patch(csiStorageCapacityKind, ref, { type: 'merge', body: { capacity: '20Gi' } })
    await waitUntilBound('db')
    await waitUntilBound('same-class')
  })

  it('CAP-12 retries when a report of the class is sufficient, and not after unrelated events', async () => {
    await createLocalStorage([5])
    await fixture.createCapacity('other', { ...nodeTopologyOf('n1'), storageClassName: 'another', capacity: '1Gi' })
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    await fixture.settle()
    const { attempts } = fixture.scheduler
    const report = (name: string, body: object) =>
      fixture.client.patch(csiStorageCapacityKind, { namespace: 'default', name }, { type: 'merge', body })
    await report('c-n1', { capacity: '4Gi' })
    await report('c-n1', { capacity: '4Gi', metadata: { labels: { touched: 'yes' } } })
    await report('other', { capacity: '100Gi' })
    await report('c-n1', { capacity: '100Gi', maximumVolumeSize: '2Gi' })
    await fixture.createNode('unfit', { spec: { unschedulable: true } })
    await fixture.client.patch(
      nodeKind,
      { name: 'n1' },
      { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
      { subresource: 'status' },
    )
    await fixture.createClaim('stranger')
    await fixture.createVolume('foreign', { spec: { storageClassName: 'another' } })
    await fixture.createClass('unrelated')
    await fixture.settle()
    await fixture.server.clock.advance(600_000)
    await fixture.settle()
    expect(fixture.scheduler.attempts).toBe(attempts)
    fixture.storage.freeBytes.set('n1', gi(100))
    await report('c-n1', { maximumVolumeSize: null })
    await waitUntilBound('db')
    expect(fixture.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-11 rejects a pod with an unbound immediate claim, and names the missing class', async () => {
    await fixture.createNode('n1')
    await fixture.createClaim('data', { storageClassName: 'missing' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(
      '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims: ' +
        'claim "data" names storage class "missing", which does not exist.',
    )
    fixture.storage.freeBytes.set('', gi(10))
    await fixture.createClass('missing', { volumeBindingMode: 'Immediate' })
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).status?.phase === 'Bound',
      'the claim to be bound',
    )
  })

  it('CAP-11 names a claim that does not exist or is being deleted', async () => {
    await fixture.createNode('n1')
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe('0/1 nodes are available: persistentvolumeclaim "data" not found.')
    await fixture.createDriver(false)
    await fixture.createClass('local')
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createClaim('data')
    await waitUntilBound('db')
    await fixture.server.delete('/api/v1/namespaces/default/persistentvolumeclaims/data')
    await fixture.createPod('second', { claims: ['data'] })
    await waitUntilUnschedulable('second')
    expect(await fixture.message('second')).toContain('persistentvolumeclaim "data" is being deleted')
  })

  it('CAP-11 rejects a pod until its volume exists', async () => {
    await restartWith({ runsControllers: false })
    await fixture.createNode('n1')
    await fixture.createClass('local')
    const annotations = { [BIND_COMPLETED]: 'yes' }
    await fixture.createClaim('data', { spec: { volumeName: 'lost' }, metadata: { annotations } })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(
      '0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).',
    )
    await fixture.createVolume('lost', { phase: 'Bound' })
    await waitUntilBound('db')
  })

  it("CAP-15 schedules a pod to its bound volume's node", async () => {
    await createLocalStorage()
    await fixture.createClaim('data')
    await fixture.createPod('first', { claims: ['data'] })
    await waitUntilBound('first')
    const node = await fixture.nodeOf('first')
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await fixture.createPod('second', { claims: ['data'] })
    await waitUntilBound('second')
    expect(await fixture.nodeOf('second')).toBe(node)
  })

  it('CAP-15 selects a node with volumes for all claims, and the smallest volume that fits each claim', async () => {
    await fixture.createClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await fixture.createNode('n1')
    await fixture.createNode('n2')
    await fixture.createVolume('one-1', { size: '10Gi', spec: nodeAffinityOf('n1') })
    await fixture.createVolume('two-5', { size: '5Gi', spec: nodeAffinityOf('n2') })
    await fixture.createVolume('two-50', { size: '50Gi', spec: nodeAffinityOf('n2') })
    await fixture.createClaim('large', { size: '20Gi' })
    await fixture.createClaim('little', { size: '5Gi' })
    await fixture.createPod('db', { claims: ['large', 'little'] })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
    expect((await fixture.claim('little')).spec?.volumeName).toBe('two-5')
    expect((await fixture.claim('large')).spec?.volumeName).toBe('two-50')
  })

  it('CAP-15 rejects a node with fewer volumes than claims', async () => {
    await fixture.createClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await fixture.createNode('n1')
    await fixture.createVolume('only', { spec: nodeAffinityOf('n1') })
    for (const name of ['a', 'b']) await fixture.createClaim(name)
    await fixture.createPod('db', { claims: ['a', 'b'] })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(`0/1 nodes are available: 1 ${NO_VOLUME}.`)
    await fixture.createVolume('another', { spec: nodeAffinityOf('n1') })
    await waitUntilBound('db')
  })

  it('CAP-11 keeps a claim on its selected node', async () => {
    await createLocalStorage()
    await fixture.createClaim('data', { metadata: { annotations: { [SELECTED_NODE]: 'n3' } } })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n3')
  })

  it('CAP-11 rejects nodes outside the allowed topologies of the class', async () => {
    await createLocalStorage()
    await fixture.createClass('only-here', {
      allowedTopologies: [{ matchLabelExpressions: [{ key: HOST, values: ['n2', 'n9'] }] }],
    })
    await fixture.createCapacity('all', { nodeTopology: {}, capacity: '100Gi', storageClassName: 'only-here' })
    await fixture.createClaim('data', { storageClassName: 'only-here' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
  })

  it('CAP-11 reports the reasons for bound and unbound claims', async () => {
    await createLocalStorage([100])
    await fixture.createClaim('data')
    await fixture.createPod('first', { claims: ['data'] })
    await waitUntilBound('first')
    await fixture.createNode('n9')
    await fixture.createClaim('logs', { size: '500Gi' })
    await fixture.createPod('second', { claims: ['data', 'logs'] })
    await waitUntilUnschedulable('second')
    expect(await fixture.message('second')).toContain(
      `0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 2 ${NO_SPACE}.`,
    )
  })

  it('CAP-11 names the driver of a bound claim that no node has registered, and the remedy', async () => {
    await createLocalStorage([100])
    await fixture.server.delete('/apis/storage.k8s.io/v1/csinodes/n1')
    await fixture.createVolume('v1', {
      spec: { ...nodeAffinityOf('elsewhere'), claimRef: { namespace: 'default', name: 'data' } },
    })
    await fixture.createClaim('data', { spec: { volumeName: 'v1' } })
    await fixture.createPod('db', { claims: ['data'] })
    const expected =
      /didn't match PersistentVolume's node affinity.* No node has registered CSI driver ".+" of claim "data" in its CSINode: .*stowage node --driver-socket/
    await fixture.waitUntil(async () => expected.test((await fixture.message('db')) ?? ''), 'the explanation')
    const drivers = [
      {
        name: (await fixture.server.get('/api/v1/persistentvolumes/v1')).json.spec.csi.driver,
        nodeID: 'n1',
        topologyKeys: [HOST],
      },
    ]
    await fixture.server.post('/apis/storage.k8s.io/v1/csinodes', { metadata: { name: 'n1' }, spec: { drivers } })
    await fixture.createPod('second', { claims: ['data'] })
    await waitUntilUnschedulable('second')
    expect(await fixture.message('second')).not.toContain('CSINode')
  })

  it('CAP-13 retries on another node when provisioning fails', async () => {
    await createLocalStorage([100, 90])
    fixture.storage.freeBytes.set('n1', 0n) // the report is wrong
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
    expect(fixture.storage.rejectedRequests).toEqual(['data on n1'])
    expect(fixture.events('db')).toContain(
      'Warning FailedScheduling: running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data": ' +
        'node "n1": rpc error: code = ResourceExhausted desc = full',
    )
  })

  it('CAP-13 releases the claim of a pod that is deleted while its volume is provisioned', async () => {
    await createLocalStorage([10])
    const provisioning = holdProvisioning()
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('first', { claims: ['data'] })
    await fixture.waitUntil(async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE], 'the node')
    await fixture.server.delete('/api/v1/namespaces/default/pods/first')
    provisioning.release()
    await fixture.createPod('second', { claims: ['data'] })
    await waitUntilBound('second')
    expect(fixture.storage.volumeCount).toBe(1)
  })

  it('CAP-12 CAP-13 reports the reason WaitingForVolumes if preBind takes a long time', async () => {
    await fixture.createNode('n1')
    await fixture.createPod('db', { claims: ['data'] })
    await waitUntilUnschedulable('db')
    const provisioning = holdProvisioning()
    await fixture.createDriver(false)
    await fixture.createClass('local')
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createClaim('data', { size: '10Gi' })
    await provisioning.waitUntilStarted()
    expect(await fixture.message('db')).toContain('"data" not found')
    await fixture.server.clock.advance(120_000)
    const waitingMessage = 'Node "n1" is selected, but not all volumes are bound yet'
    await fixture.waitUntil(async () => (await fixture.message('db'))?.includes(waitingMessage), 'the condition')
    expect(fixture.events('db').at(-1)).toContain('Normal WaitingForVolumes')
    provisioning.release()
    await waitUntilBound('db')
  })

  it('CAP-13 retries a pod whose volume is not bound within the timeout', async () => {
    await restartWith({ bindTimeoutMs: 30_000 })
    await createLocalStorage([10])
    const provisioning = holdProvisioning()
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await provisioning.waitUntilStarted()
    await fixture.server.clock.advance(31_000)
    await fixture.waitUntil(
      () => fixture.events('db').some((event) => event.includes('binding volumes: context deadline exceeded')),
      'the timeout',
    )
    provisioning.release()
    await waitUntilBound('db')
  })

  it('CAP-13 selects another node if the selected node is deleted during provisioning', async () => {
    await createLocalStorage([100, 50])
    const provisioning = holdProvisioning()
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await provisioning.waitUntilStarted()
    await fixture.server.delete('/api/v1/nodes/n1')
    fixture.storage.freeBytes.set('n1', 0n)
    provisioning.release()
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
  })

  it('CAP-13 schedules two pods that share a claim to the same node', async () => {
    await createLocalStorage([100, 100, 100])
    await fixture.createClaim('shared')
    await fixture.createPod('a', { claims: ['shared'] })
    await fixture.createPod('b', { claims: ['shared'] })
    await waitUntilBound('a')
    await waitUntilBound('b')
    expect(await fixture.nodeOf('a')).toBe(await fixture.nodeOf('b'))
    expect(fixture.storage.volumeCount).toBe(1)
  })

  it('CAP-13 keeps the selected node and the reservation after the scheduler restarts', async () => {
    await createLocalStorage([100, 50])
    const provisioning = holdProvisioning()
    await fixture.createClaim('data', { size: '10Gi' })
    await fixture.createPod('db', { claims: ['data'] })
    await provisioning.waitUntilStarted()
    await fixture.restart()
    await fixture.settle()
    expect(fixture.scheduler.reservations).toBe(1)
    provisioning.release()
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n1')
  })

  it('CAP-13 retries if another claim is bound to the volume first', async () => {
    let interfere: (() => Promise<void>) | undefined
    await restartWith({
      wrapClient: (client) => ({
        ...client,
        patch: async (kind, ref, ...options) => {
          const pendingInterference = kind.plural === persistentVolumeKind.plural ? interfere : undefined
          if (pendingInterference) interfere = undefined
          await pendingInterference?.()
          return client.patch(kind, ref, ...options)
        },
      }),
    })
    await fixture.createClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await fixture.createNode('n1')
    await fixture.createVolume('v1')
    interfere = async () => {
      const body = { spec: { claimRef: { namespace: 'default', name: 'other' } } }
      await fixture.client.patch(persistentVolumeKind, { name: 'v1' }, { type: 'merge', body })
    }
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await fixture.waitUntil(
      async () => (await fixture.message('db'))?.includes(NO_VOLUME),
      'the message to be reported',
    )
    await fixture.createVolume('v2')
    await waitUntilBound('db')
    expect((await fixture.claim('data')).spec?.volumeName).toBe('v2')
  })

  it('CAP-13 provisions the claims of a pod created with spec.nodeName on that node', async () => {
    await createLocalStorage([100, 50, 10])
    await fixture.createClaim('data')
    await fixture.createPod('direct', { claims: ['data'], spec: { nodeName: 'n3' } })
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).status?.phase === 'Bound',
      'the claim to be bound',
    )
    expect((await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBe('n3')
    expect(fixture.storage.freeBytes.get('n3')).toBe(gi(9))
    expect(fixture.events('direct')).toEqual([
      'Normal NodeSelected: The volume of claim "data" is provisioned on node "n3", which spec.nodeName of the pod sets.',
    ])
  })

  it('PLUS-11 provisions nothing for a pod with spec.nodeName while its node is lost', async () => {
    const patchNode = (body: object, subresource?: string) =>
      fixture.client.patch(nodeKind, { name: 'n3' }, { type: 'merge', body }, subresource ? { subresource } : {})
    await createLocalStorage([100, 50, 10])
    await patchNode({ spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } })
    await patchNode({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, 'status')
    await fixture.createClaim('data')
    await fixture.createPod('direct', { claims: ['data'], spec: { nodeName: 'n3' } })
    await fixture.settle()
    expect((await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBe(undefined)
    await patchNode({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }, 'status')
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n3',
      'the node to be selected',
    )
  })

  it('reports why the volume of a pod with spec.nodeName does not fit on that node, and requests it anyway', async () => {
    await createLocalStorage([100, 10])
    await fixture.createClaim('data', { size: '20Gi' })
    await fixture.createPod('direct', { claims: ['data'], spec: { nodeName: 'n2' } })
    await fixture.waitUntil(() => fixture.events('direct').length > 1, 'the events')
    expect(fixture.events('direct')[1]).toMatch(
      /^Warning FailedScheduling: The volume of claim "data" is requested on node "n2", .* although the scheduler would not choose the node: .*20Gi.*10Gi/,
    )
    await fixture.waitUntil(() => fixture.storage.rejectedRequests.includes('data on n2'), 'the driver to be called')
    expect(fixture.storage.rejectedRequests).not.toContain('data on n1')
  })

  it('CAP-13 provisions the claims of a pod with spec.nodeName when its node registers, and records an event until then', async () => {
    await createLocalStorage([100])
    fixture.storage.freeBytes.set('n2', gi(10))
    await fixture.createClaim('data')
    await fixture.createPod('direct', { claims: ['data'], spec: { nodeName: 'n2' } })
    await fixture.waitUntil(() => fixture.events('direct').length > 0, 'an event')
    expect(fixture.events('direct')).toEqual([
      'Warning FailedScheduling: Node "n2" of spec.nodeName does not exist, so no volume is provisioned for claim "data": ' +
        'waiting for the node to register. If the name is wrong, delete the pod and create it with another.',
    ])
    expect((await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBe(undefined)
    await fixture.createNode('n2')
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).status?.phase === 'Bound',
      'the claim to be bound',
    )
    expect((await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBe('n2')
  })

  const DIRECT_OBJECTS = ['claim', 'class', 'node', 'pod'] as const
  it.each(permutations(DIRECT_OBJECTS))(
    'CAP-13 provisions for spec.nodeName if the objects appear in the order %s, %s, %s, %s',
    async (...order) => {
      fixture.storage.freeBytes.set('n1', gi(10))
      const create: Record<(typeof DIRECT_OBJECTS)[number], () => Promise<unknown>> = {
        claim: () => fixture.createClaim('data'),
        class: () => fixture.createClass('local'),
        node: () => fixture.createNode('n1'),
        pod: () => fixture.createPod('direct', { claims: ['data'], spec: { nodeName: 'n1' } }),
      }
      for (const object of order) {
        await create[object]()
        await fixture.settle()
      }
      await fixture.waitUntil(
        async () => (await fixture.claim('data')).status?.phase === 'Bound',
        'the claim to be bound',
      )
    },
  )

  it('CAP-13 explains that a bound claim requires a node without capacity for another claim', async () => {
    await createLocalStorage([100, 50])
    await fixture.createClaim('a', { size: '95Gi' })
    await fixture.createPod('first', { claims: ['a'] })
    await waitUntilBound('first')
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await fixture.createClaim('b', { size: '40Gi' })
    await fixture.createPod('second', { claims: ['a', 'b'] })
    await waitUntilUnschedulable('second')
    expect(await fixture.message('second')).toContain(
      'Claim "a" already has its volume on "n1", where no volume is available for "b": ' +
        'free storage there, or delete "a" so that all volumes are created on another node. ' +
        'Deleting "a" also deletes the data: back it up first.',
    )
    expect((await fixture.claim('a')).metadata.deletionTimestamp).toBe(undefined)
  })

  it('CAP-16 deletes ephemeral claims on a node on which the pod does not fit, and provisions all on another node', async () => {
    await createLocalStorage([100, 50])
    await fixture.createClass('other', { provisioner: DRIVER })
    for (const name of ['n1', 'n2']) {
      await fixture.createCapacity(`o-${name}`, {
        ...nodeTopologyOf(name),
        storageClassName: 'other',
        capacity: '30Gi',
      })
    }
    // The first volume is created on n1; then n1 has no capacity for the second.
    fixture.storage.freeBytes.set('n1', gi(12))
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '20Gi', storageClassName: 'other' },
      },
    })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
    const [first, second] = [await fixture.claim('db-first'), await fixture.claim('db-second')]
    expect([first.status?.phase, second.status?.phase]).toEqual(['Bound', 'Bound'])
    expect(fixture.events('db').some((event) => event.includes('Deleting claim "db-first"'))).toBe(true)
    await fixture.waitUntil(() => fixture.storage.freeBytes.get('n1') === gi(12), 'the first volume to be deleted')
  })

  it('CAP-16 retries a rejected deletion of an ephemeral claim after a backoff', async () => {
    let rejections = 0
    await restartWith({
      wrapClient: (client) => ({
        ...client,
        delete: async (kind, ref, ...options) => {
          if (kind === persistentVolumeClaimKind && rejections++ < 2) throw new Error('webhook denied the deletion')
          return client.delete(kind, ref, ...options)
        },
      }),
    })
    await createLocalStorage([100, 30])
    fixture.storage.freeBytes.set('n1', gi(12))
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
    expect(rejections).toBeGreaterThan(2)
  })

  it('CAP-16 deletes ephemeral claims when a node is added on which all of them fit', async () => {
    await createLocalStorage([100])
    fixture.storage.freeBytes.set('n1', gi(12))
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const firstVolumeName = async () => (await fixture.claim('db-first').catch(() => undefined))?.spec?.volumeName
    await fixture.waitUntil(firstVolumeName, 'the first volume')
    const ref = { namespace: 'default', name: 'c-n1' }
    await fixture.client.patch(csiStorageCapacityKind, ref, { type: 'merge', body: { capacity: '2Gi' } })
    await fixture.waitUntil(
      async () => (await fixture.message('db'))?.includes('already has its volume'),
      'the explanation',
    )
    await fixture.createCapacity('c-n2', { ...nodeTopologyOf('n2'), capacity: '21Gi' })
    await fixture.settle()
    fixture.storage.freeBytes.set('n2', gi(21))
    await fixture.createNode('n2')
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
  })

  it('CAP-16 avoids a node on which provisioning failed, even if it reports the most capacity', async () => {
    await createLocalStorage([100, 30])
    fixture.storage.freeBytes.set('n1', gi(12))
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    await waitUntilBound('db')
    expect(await fixture.nodeOf('db')).toBe('n2')
    expect(fixture.storage.rejectedRequests).toHaveLength(1)
  })

  it('CAP-16 deletes ephemeral claims with backoff if reports are wrong', async () => {
    await createLocalStorage([100])
    fixture.storage.freeBytes.set('n1', gi(12))
    await fixture.createNode('n2')
    await fixture.createCapacity('c-n2', { ...nodeTopologyOf('n2'), capacity: '100Gi' })
    fixture.storage.freeBytes.set('n2', gi(12))
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const claimUids = new Set<string | undefined>()
    for (let minutes = 0; minutes < 60; minutes++) {
      await fixture.server.clock.advance(60_000)
      await fixture.settle()
      claimUids.add((await fixture.claim('db-first').catch(() => undefined))?.metadata.uid)
    }
    expect(claimUids.size).toBeGreaterThan(2)
    expect(claimUids.size).toBeLessThan(12)
    fixture.storage.freeBytes.set('n2', fixture.storage.freeBytes.get('n2')! + gi(100))
    await fixture.waitUntil(async () => {
      await fixture.server.clock.advance(60_000)
      return fixture.nodeOf('db')
    }, 'the pod to have a node')
  })

  it('CAP-16 does not delete claims whose volumes do not fit together, even without reservations', async () => {
    await restartWith({ reservesCapacity: false })
    await createLocalStorage([12, 12])
    await fixture.createPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const firstVolumeName = async () => (await fixture.claim('db-first').catch(() => undefined))?.spec?.volumeName
    await fixture.waitUntil(firstVolumeName, 'the first volume')
    const name = `c-${(await fixture.claim('db-first')).metadata.annotations?.[SELECTED_NODE]}`
    const patch = { type: 'merge', body: { capacity: '2Gi' } } as const
    await fixture.client.patch(csiStorageCapacityKind, { namespace: 'default', name }, patch)
    await fixture.waitUntil(
      async () => (await fixture.message('db'))?.includes('already has its volume'),
      'the explanation',
    )
    await fixture.settle()
    expect(fixture.events('db').some((event) => event.includes('Deleting claim'))).toBe(false)
  })

  it.each(['WaitForFirstConsumer', 'Immediate'])(
    'CAP-14 records no Warning for a pod whose ephemeral claim is created and bound soon (%s)',
    async (volumeBindingMode) => {
      await fixture.createNode('n1')
      await fixture.createClass('local', { volumeBindingMode })
      for (const pool of ['n1', '']) fixture.storage.freeBytes.set(pool, gi(10))
      fixture.storage.poolOf = () => 'n1'
      if (volumeBindingMode === 'Immediate') await fixture.createVolume('v1', { size: '1Gi' })
      await fixture.createPod('db', { ephemeral: { scratch: { size: '1Gi', storageClassName: 'local' } } })
      await waitUntilBound('db')
      await fixture.server.clock.advance(60_000)
      await fixture.settle()
      expect(fixture.events('db').filter((event) => event.startsWith('Warning'))).toEqual([])
    },
  )

  it('CAP-14 CAP-12 records a Warning if the claim of an ephemeral volume is not created', async () => {
    await restartWith({ runsControllers: false })
    await fixture.createNode('n1')
    await fixture.createPod('db', { ephemeral: { scratch: { size: '1Gi', storageClassName: 'local' } } })
    await waitUntilUnschedulable('db')
    expect(fixture.events('db')).toEqual([
      'Warning FailedScheduling: 0/1 nodes are available: ' +
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "db-scratch".',
    ])
  })

  it('CAP-14 rejects a pod if the claim of its ephemeral volume was not created for it', async () => {
    await createLocalStorage([100])
    await fixture.createClaim('db-scratch')
    await fixture.createPod('db', { ephemeral: { scratch: { size: '1Gi', storageClassName: 'local' } } })
    await waitUntilUnschedulable('db')
    expect(await fixture.message('db')).toBe(
      '0/1 nodes are available: PVC default/db-scratch was not created for pod default/db (pod is not owner).',
    )
    await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'db-scratch' })
    await waitUntilBound('db')
    expect((await fixture.claim('db-scratch')).metadata.ownerReferences).toMatchObject([{ kind: 'Pod', name: 'db' }])
  })
})
