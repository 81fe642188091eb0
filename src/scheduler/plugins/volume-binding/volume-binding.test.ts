import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import {
  DRIVER,
  gi,
  HOST,
  type SchedulerFixture,
  type SchedulerFixtureOptions,
  startSchedulerFixture,
} from '../../scheduler.fixture.ts'

let trial: SchedulerFixture
const start = async (options?: SchedulerFixtureOptions) => {
  trial = await startSchedulerFixture(options)
}
beforeEach(() => start())
afterEach(() => trial.stop())
const again = async (options: SchedulerFixtureOptions) => {
  await trial.stop()
  await start(options)
}

const onNode = (name: string) => ({ nodeTopology: { matchLabels: { [HOST]: name } } })
const pinnedTo = (name: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values: [name] }] }] },
  },
})
const placed = (pod: string) => trial.until(() => trial.nodeOf(pod), `${pod} to have a node`)
const waits = (pod: string) => trial.until(() => trial.message(pod), `${pod} to say why it waits`)
const NO_SPACE = 'node(s) did not have enough free storage'
const NO_VOLUME = "node(s) didn't find available persistent volumes to bind"

/** Nodes n1..n3 with 100, 50 and 10 Gi of local storage each reported for the class `local`. */
async function localStorage(sizes: readonly number[] = [100, 50, 10]) {
  await trial.aDriver()
  await trial.aClass('local')
  for (const [index, size] of sizes.entries()) {
    const name = `n${index + 1}`
    await trial.aNode(name)
    await trial.aCapacity(`c-${name}`, { ...onNode(name), capacity: `${size}Gi` })
    trial.storage.free.set(name, gi(size))
  }
}

describe('volumes and nodes', () => {
  it('CAP-13 a delayed claim gets its node, its volume is made there, and the pod follows', async () => {
    await localStorage()
    await trial.aClaim('data', { size: '80Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n1')
    const claim = await trial.claim('data')
    expect(claim.metadata.annotations?.[SELECTED_NODE]).toBe('n1')
    expect(claim.status?.phase).toBe('Bound')
    expect(trial.storage.refused).toEqual([])
  })

  it('CAP-11 capacity counts by class, node and size, the maximum before the capacity, unknown as none', async () => {
    await trial.aDriver()
    await trial.aClass('local')
    for (const name of ['small', 'other', 'maximum', 'zero', 'unknown', 'silent']) await trial.aNode(name)
    await trial.aCapacity('c1', { ...onNode('small'), capacity: '9Gi' })
    await trial.aCapacity('c2', { ...onNode('other'), storageClassName: 'another', capacity: '100Gi' })
    await trial.aCapacity('c3', { ...onNode('maximum'), capacity: '100Gi', maximumVolumeSize: '5Gi' })
    await trial.aCapacity('c4', { ...onNode('zero'), capacity: '0' })
    await trial.aCapacity('c5', { ...onNode('unknown') })
    await trial.aCapacity('c6', { capacity: '100Gi' })
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    expect(await trial.message('db')).toBe(
      `0/6 nodes are available: 6 ${NO_SPACE}. ` +
        'A volume of 10Gi of class "local" is asked for, and at most 9Gi is free on any of the nodes.',
    )
  })

  it('PLUS-3 pods that come and go between two reports leave their room to the next', async () => {
    await localStorage([10])
    await trial.aPod('first', { ephemeral: { scratch: { size: '8Gi', storageClassName: 'local' } } })
    await placed('first')
    await trial.aPod('second', { ephemeral: { scratch: { size: '8Gi', storageClassName: 'local' } } })
    await trial.until(async () => (await trial.message('second'))?.includes(NO_SPACE), 'second to say why it waits')
    const leftAt = trial.trial.clock.monotonicMs()
    // Nobody collects garbage here: the pod's claim goes by hand. No report has changed.
    await trial.client.delete(podKind, { namespace: 'default', name: 'first' }, { gracePeriodSeconds: 0 })
    await trial.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'first-scratch' })
    await placed('second')
    expect(trial.trial.clock.monotonicMs() - leftAt).toBeLessThan(15_000)
    expect(trial.storage.refused).toEqual([])
  })

  it('CAP-11 a class that nobody reports capacity for is told by name', async () => {
    await trial.aDriver()
    await trial.aClass('local')
    await trial.aNode('n1')
    await trial.aClaim('data')
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    expect(await trial.message('db')).toContain('No capacity is reported on any of the nodes for class "local".')
  })

  it.each([
    ['the driver has not opted in', () => trial.aDriver(false)],
    ['the driver has no CSIDriver object', async () => {}],
  ])('CAP-2 where %s, nothing is checked', async (_what, drive) => {
    await drive()
    await trial.aClass('local')
    await trial.aNode('n1')
    trial.storage.free.set('n1', gi(100))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
  })

  it('CAP-18 with the gate off, capacity objects and the opt-in are kept and ignored', async () => {
    await again({ gates: 'CSIStorageCapacity=false' })
    await localStorage([1])
    trial.storage.free.set('n1', gi(100))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
  })

  it('CAP-15 an object without conditions reaches every node: network storage of the whole cluster', async () => {
    await trial.aDriver()
    await trial.aClass('local')
    await trial.aNode('n1')
    await trial.aCapacity('everywhere', { nodeTopology: {}, capacity: '20Gi' })
    trial.storage.free.set('n1', gi(20))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
  })

  it('CAP-12 an opt-in that is withdrawn lets the pod in at once', async () => {
    await localStorage([1])
    trial.storage.free.set('n1', gi(100))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    const body = { spec: { storageCapacity: false } }
    await trial.client.patch(csiDriverKind, { name: DRIVER }, { type: 'merge', body })
    await placed('db')
  })

  it('CAP-12 a node that comes before its capacity is known helps as soon as that is, without a try in between', async () => {
    await trial.aDriver()
    await trial.aClass('local')
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    expect(await trial.message('db')).toBe('no nodes available to schedule pods')
    const { attempts } = trial.scheduler
    await trial.aNode('n1')
    trial.storage.free.set('n1', gi(10))
    await trial.settle()
    expect(trial.scheduler.attempts).toBe(attempts)
    await trial.aCapacity('c-n1', { ...onNode('n1'), capacity: '10Gi' })
    await placed('db')
    expect(trial.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-12 a node that is uncordoned while it is full helps as soon as it has room', async () => {
    await localStorage([5])
    const cordon = (unschedulable: boolean | null) =>
      trial.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body: { spec: { unschedulable } } })
    await cordon(true)
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await trial.aClaim('more', { size: '10Gi' })
    await trial.aPod('alike', { claims: ['more'] })
    await waits('db')
    await waits('alike')
    await cordon(null)
    await trial.settle()
    trial.storage.free.set('n1', gi(20))
    const ref = { namespace: 'default', name: 'c-n1' }
    await trial.client.patch(csiStorageCapacityKind, ref, { type: 'merge', body: { capacity: '20Gi' } })
    await placed('db')
    await placed('alike')
  })

  it('CAP-12 only an update to more wakes the pod; one to less, the same, or for others causes no attempt', async () => {
    await localStorage([5])
    await trial.aCapacity('other', { ...onNode('n1'), storageClassName: 'another', capacity: '1Gi' })
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    await trial.settle()
    const { attempts } = trial.scheduler
    const report = (name: string, body: object) =>
      trial.client.patch(csiStorageCapacityKind, { namespace: 'default', name }, { type: 'merge', body })
    await report('c-n1', { capacity: '4Gi' })
    await report('c-n1', { capacity: '4Gi', metadata: { labels: { touched: 'yes' } } })
    await report('other', { capacity: '100Gi' })
    await report('c-n1', { capacity: '100Gi', maximumVolumeSize: '2Gi' })
    await trial.aNode('unfit', { spec: { unschedulable: true } })
    await trial.client.patch(
      nodeKind,
      { name: 'n1' },
      { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
      { subresource: 'status' },
    )
    await trial.aClaim('stranger')
    await trial.aVolume('foreign', { spec: { storageClassName: 'another' } })
    await trial.aClass('unrelated')
    await trial.settle()
    await trial.trial.clock.advance(600_000)
    await trial.settle()
    expect(trial.scheduler.attempts).toBe(attempts)
    trial.storage.free.set('n1', gi(100))
    await report('c-n1', { maximumVolumeSize: null })
    await placed('db')
    expect(trial.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-11 claims that wait for no pod keep it from every node until the binder has bound them', async () => {
    await trial.aNode('n1')
    await trial.aClass('at-once', { volumeBindingMode: 'Immediate' })
    await trial.aClaim('later', { storageClassName: 'missing' })
    await trial.aPod('db', { claims: ['later'] })
    await waits('db')
    expect(await trial.message('db')).toBe(
      '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims: ' +
        'claim "later" names the storage class "missing", which does not exist.',
    )
    trial.storage.free.set('', gi(10))
    await trial.aClass('missing', { volumeBindingMode: 'Immediate' })
    await trial.until(async () => (await trial.claim('later')).status?.phase === 'Bound', 'the claim to be bound')
  })

  it('CAP-11 a claim that is not there, is going, or has lost its volume is told by name', async () => {
    await trial.aNode('n1')
    await trial.aPod('db', { claims: ['nothing'] })
    await waits('db')
    expect(await trial.message('db')).toBe('0/1 nodes are available: persistentvolumeclaim "nothing" not found.')
    await trial.aDriver(false)
    await trial.aClass('local')
    trial.storage.free.set('n1', gi(10))
    await trial.aClaim('nothing')
    await placed('db')
    await trial.trial.delete('/api/v1/namespaces/default/persistentvolumeclaims/nothing')
    await trial.aPod('late', { claims: ['nothing'] })
    await waits('late')
    expect(await trial.message('late')).toContain('persistentvolumeclaim "nothing" is being deleted')
  })

  it('CAP-11 a claim whose volume does not exist keeps its pod waiting, until the volume is there', async () => {
    await again({ controllers: false })
    await trial.aNode('n1')
    await trial.aClass('local')
    const bound = { [BIND_COMPLETED]: 'yes' }
    await trial.aClaim('data', { spec: { volumeName: 'lost' }, metadata: { annotations: bound } })
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    expect(await trial.message('db')).toBe(
      '0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).',
    )
    await trial.aVolume('lost', { phase: 'Bound' })
    await placed('db')
  })

  it('CAP-15 bound volumes keep a pod where they are', async () => {
    await localStorage()
    await trial.aClaim('data')
    await trial.aPod('first', { claims: ['data'] })
    await placed('first')
    const home = await trial.nodeOf('first')
    await trial.trial.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await trial.aPod('second', { claims: ['data'] })
    await placed('second')
    expect(await trial.nodeOf('second')).toBe(home)
  })

  it('CAP-15 existing volumes are chosen per node, the small claim getting the small one', async () => {
    await trial.aClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await trial.aNode('n1')
    await trial.aNode('n2')
    await trial.aVolume('one-1', { size: '10Gi', spec: pinnedTo('n1') })
    await trial.aVolume('two-5', { size: '5Gi', spec: pinnedTo('n2') })
    await trial.aVolume('two-50', { size: '50Gi', spec: pinnedTo('n2') })
    await trial.aClaim('large', { size: '20Gi' })
    await trial.aClaim('little', { size: '5Gi' })
    await trial.aPod('db', { claims: ['large', 'little'] })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
    expect((await trial.claim('little')).spec?.volumeName).toBe('two-5')
    expect((await trial.claim('large')).spec?.volumeName).toBe('two-50')
  })

  it('CAP-15 two claims and one volume is one too few', async () => {
    await trial.aClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await trial.aNode('n1')
    await trial.aVolume('only', { spec: pinnedTo('n1') })
    for (const name of ['a', 'b']) await trial.aClaim(name)
    await trial.aPod('db', { claims: ['a', 'b'] })
    await waits('db')
    expect(await trial.message('db')).toBe(`0/1 nodes are available: 1 ${NO_VOLUME}.`)
    await trial.aVolume('another', { spec: pinnedTo('n1') })
    await placed('db')
  })

  it('CAP-11 a claim with a selected node goes nowhere else', async () => {
    await localStorage()
    await trial.aClaim('data', { metadata: { annotations: { [SELECTED_NODE]: 'n3' } } })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n3')
  })

  it('CAP-11 nodes outside the allowed topologies of the class are refused', async () => {
    await localStorage()
    await trial.aClass('only-here', {
      allowedTopologies: [{ matchLabelExpressions: [{ key: HOST, values: ['n2', 'n9'] }] }],
    })
    await trial.aCapacity('all', { nodeTopology: {}, capacity: '100Gi', storageClassName: 'only-here' })
    await trial.aClaim('data', { storageClassName: 'only-here' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
  })

  it('CAP-11 bound and unbound claims that both fail give two reasons', async () => {
    await localStorage([100])
    await trial.aClaim('here')
    await trial.aPod('first', { claims: ['here'] })
    await placed('first')
    await trial.aNode('n9')
    await trial.aClaim('there', { size: '500Gi' })
    await trial.aPod('second', { claims: ['here', 'there'] })
    await waits('second')
    expect(await trial.message('second')).toContain(
      `0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 2 ${NO_SPACE}.`,
    )
  })

  it('CAP-13 storage that is exhausted sends the pod elsewhere, and nothing is left half-bound', async () => {
    await localStorage([100, 90])
    trial.storage.free.set('n1', 0n) // the report is wrong
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
    expect(trial.storage.refused).toEqual(['data on n1'])
    expect(trial.told('db')).toContain(
      'Warning FailedScheduling: running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"',
    )
  })

  it('CAP-13 a pod that goes while its volume is being made leaves nothing in the way of others', async () => {
    await localStorage([10])
    let letGo = () => {}
    trial.storage.before = () => new Promise<void>((resolve) => (letGo = resolve))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('gone', { claims: ['data'] })
    await trial.until(async () => (await trial.claim('data')).metadata.annotations?.[SELECTED_NODE], 'the node')
    await trial.trial.delete('/api/v1/namespaces/default/pods/gone')
    trial.storage.before = async () => {}
    letGo()
    await trial.aPod('next', { claims: ['data'] })
    await placed('next')
    expect(trial.storage.made).toBe(1)
  })

  it('CAP-12 CAP-13 a pod that has a node and waits long for its volume says so, and no more why it had none before', async () => {
    await trial.aNode('n1')
    await trial.aPod('db', { claims: ['data'] })
    await waits('db')
    const held: (() => void)[] = []
    trial.storage.before = () => new Promise<void>((resolve) => void held.push(resolve))
    await trial.aDriver(false)
    await trial.aClass('local')
    trial.storage.free.set('n1', gi(10))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.until(() => held.length > 0, 'the driver to be asked')
    expect(await trial.message('db')).toContain('"data" not found')
    await trial.trial.clock.advance(120_000)
    const chosen = 'Node "n1" is chosen, and not all volumes are there yet'
    await trial.until(async () => (await trial.message('db'))?.includes(chosen), 'the pod to say so')
    expect(trial.told('db').at(-1)).toContain('Normal WaitingForVolumes')
    trial.storage.before = async () => {}
    for (const letGo of held) letGo()
    await placed('db')
  })

  it('CAP-13 a pod whose volume does not come is tried anew after a while', async () => {
    await again({ bindTimeoutMs: 30_000 })
    await localStorage([10])
    const held: (() => void)[] = []
    trial.storage.before = () => new Promise<void>((resolve) => void held.push(resolve))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await trial.until(() => held.length > 0, 'the driver to be asked')
    await trial.trial.clock.advance(31_000)
    await trial.until(
      () => trial.told('db').some((text) => text.includes('binding volumes: context deadline exceeded')),
      'the time to be up',
    )
    trial.storage.before = async () => {}
    for (const letGo of held) letGo()
    await placed('db')
  })

  it('CAP-13 a node that goes while the volume is being made is left for another', async () => {
    await localStorage([100, 50])
    const held: (() => void)[] = []
    trial.storage.before = () => new Promise<void>((resolve) => void held.push(resolve))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await trial.until(() => held.length > 0, 'the driver to be asked')
    await trial.trial.delete('/api/v1/nodes/n1')
    trial.storage.free.set('n1', 0n)
    trial.storage.before = async () => {}
    for (const letGo of held) letGo()
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
  })

  it('CAP-13 two pods that share a claim go to the same node', async () => {
    await localStorage([100, 100, 100])
    await trial.aClaim('shared')
    await trial.aPod('a', { claims: ['shared'] })
    await trial.aPod('b', { claims: ['shared'] })
    await placed('a')
    await placed('b')
    expect(await trial.nodeOf('a')).toBe(await trial.nodeOf('b'))
    expect(trial.storage.made).toBe(1)
  })

  it('CAP-13 a scheduler that starts anew goes on where the last one stopped', async () => {
    await localStorage([100, 50])
    const held: (() => void)[] = []
    trial.storage.before = () => new Promise<void>((resolve) => void held.push(resolve))
    await trial.aClaim('data', { size: '10Gi' })
    await trial.aPod('db', { claims: ['data'] })
    await trial.until(() => held.length > 0, 'the driver to be asked')
    await trial.restart()
    await trial.settle()
    expect(trial.scheduler.reservations).toBe(1)
    trial.storage.before = async () => {}
    for (const letGo of held) letGo()
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n1')
  })

  it('CAP-13 a volume that another takes meanwhile costs a retry, and never two owners', async () => {
    let interfere: (() => Promise<void>) | undefined
    await again({
      through: (client) => ({
        ...client,
        patch: async (kind: any, ref: any, ...rest: any[]) => {
          const first = kind === persistentVolumeKind ? interfere : undefined
          if (first) interfere = undefined
          await first?.()
          return (client.patch as any)(kind, ref, ...rest)
        },
      }),
    })
    await trial.aClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
    await trial.aNode('n1')
    await trial.aVolume('v1')
    interfere = async () => {
      const body = { spec: { claimRef: { namespace: 'default', name: 'someone-else' } } }
      await trial.client.patch(persistentVolumeKind, { name: 'v1' }, { type: 'merge', body })
    }
    await trial.aClaim('data')
    await trial.aPod('db', { claims: ['data'] })
    await trial.until(async () => (await trial.message('db'))?.includes(NO_VOLUME), 'the volume to be gone')
    await trial.aVolume('v2')
    await placed('db')
    expect((await trial.claim('data')).spec?.volumeName).toBe('v2')
  })

  it('CAP-13 a pod that names its node directly has its claims made for that node', async () => {
    await localStorage([100, 50, 10])
    await trial.aClaim('data')
    await trial.aPod('direct', { claims: ['data'], spec: { nodeName: 'n3' } })
    await trial.until(async () => (await trial.claim('data')).status?.phase === 'Bound', 'the claim to be bound')
    expect((await trial.claim('data')).metadata.annotations?.[SELECTED_NODE]).toBe('n3')
    expect(trial.storage.free.get('n3')).toBe(gi(9))
  })

  it('CAP-13 a pod trapped by one of its claims says exactly that', async () => {
    await localStorage([100, 50])
    await trial.aClaim('a', { size: '95Gi' })
    await trial.aPod('first', { claims: ['a'] })
    await placed('first')
    await trial.trial.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await trial.aClaim('b', { size: '40Gi' })
    await trial.aPod('second', { claims: ['a', 'b'] })
    await waits('second')
    expect(await trial.message('second')).toContain(
      'Claim "a" already has its volume on "n1", where no volume can be had for "b": ' +
        'make room there, or delete "a" to have all made elsewhere.',
    )
    expect((await trial.claim('a')).metadata.deletionTimestamp).toBe(undefined)
  })

  it('CAP-16 ephemeral volumes of a trapped pod are given back and made where all fit', async () => {
    await localStorage([100, 50])
    await trial.aClass('other', { provisioner: DRIVER })
    for (const name of ['n1', 'n2']) {
      await trial.aCapacity(`o-${name}`, { ...onNode(name), storageClassName: 'other', capacity: '30Gi' })
    }
    // The first volume is made on n1; then n1 turns out to have no room for the second.
    trial.storage.free.set('n1', gi(12))
    await trial.aPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '20Gi', storageClassName: 'other' },
      },
    })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
    const [first, second] = [await trial.claim('db-first'), await trial.claim('db-second')]
    expect([first.status?.phase, second.status?.phase]).toEqual(['Bound', 'Bound'])
    expect(trial.told('db').some((text) => text.includes('The volume of "db-first" is given back'))).toBe(true)
    await trial.until(() => trial.storage.free.get('n1') === gi(12), 'the first volume to be deleted')
  })

  it('CAP-16 a trapped pod gives its volumes back for a node that comes later, and has room for all', async () => {
    await localStorage([100])
    trial.storage.free.set('n1', gi(12))
    await trial.aPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const firstVolume = async () => (await trial.claim('db-first').catch(() => undefined))?.spec?.volumeName
    await trial.until(firstVolume, 'the first volume')
    const ref = { namespace: 'default', name: 'c-n1' }
    await trial.client.patch(csiStorageCapacityKind, ref, { type: 'merge', body: { capacity: '2Gi' } })
    await trial.until(
      async () => (await trial.message('db'))?.includes('already has its volume'),
      'the pod to be trapped',
    )
    await trial.aCapacity('c-n2', { ...onNode('n2'), capacity: '21Gi' })
    await trial.settle()
    trial.storage.free.set('n2', gi(21))
    await trial.aNode('n2')
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
  })

  it('CAP-16 volumes that were given back are made elsewhere, though the place they came from still promises most', async () => {
    await localStorage([100, 30])
    trial.storage.free.set('n1', gi(12))
    await trial.aPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    await placed('db')
    expect(await trial.nodeOf('db')).toBe('n2')
    expect(trial.storage.refused).toHaveLength(1)
  })

  it('CAP-16 where reports promise room that is not there, volumes are given back ever more rarely', async () => {
    await localStorage([100])
    trial.storage.free.set('n1', gi(12))
    await trial.aNode('n2')
    await trial.aCapacity('c-n2', { ...onNode('n2'), capacity: '100Gi' })
    trial.storage.free.set('n2', gi(12))
    await trial.aPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const claims = new Set<string | undefined>()
    for (let minutes = 0; minutes < 60; minutes++) {
      await trial.trial.clock.advance(60_000)
      await trial.settle()
      claims.add((await trial.claim('db-first').catch(() => undefined))?.metadata.uid)
    }
    expect(claims.size).toBeGreaterThan(2)
    expect(claims.size).toBeLessThan(12)
    trial.storage.free.set('n2', trial.storage.free.get('n2')! + gi(100))
    await trial.until(async () => {
      await trial.trial.clock.advance(60_000)
      return trial.nodeOf('db')
    }, 'the pod to have a node')
  })

  it('CAP-16 without reservation, nothing is given back for volumes that fit only one by one', async () => {
    await again({ capacityReservation: false })
    await localStorage([12, 12])
    await trial.aPod('db', {
      ephemeral: {
        first: { size: '10Gi', storageClassName: 'local' },
        second: { size: '11Gi', storageClassName: 'local' },
      },
    })
    const firstVolume = async () => (await trial.claim('db-first').catch(() => undefined))?.spec?.volumeName
    await trial.until(firstVolume, 'the first volume')
    const name = `c-${(await trial.claim('db-first')).metadata.annotations?.[SELECTED_NODE]}`
    const patch = { type: 'merge', body: { capacity: '2Gi' } } as const
    await trial.client.patch(csiStorageCapacityKind, { namespace: 'default', name }, patch)
    await trial.until(
      async () => (await trial.message('db'))?.includes('already has its volume'),
      'the pod to be trapped',
    )
    await trial.settle()
    expect(trial.told('db').some((text) => text.includes('given back'))).toBe(false)
  })

  it('CAP-14 a pod waits for the claims of its ephemeral volumes, and takes none that was made for others', async () => {
    await localStorage([100])
    await trial.aClaim('db-scratch')
    await trial.aPod('db', { ephemeral: { scratch: { size: '1Gi', storageClassName: 'local' } } })
    await waits('db')
    expect(await trial.message('db')).toBe(
      '0/1 nodes are available: PVC default/db-scratch was not created for pod default/db (pod is not owner).',
    )
    await trial.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'db-scratch' })
    await placed('db')
    expect((await trial.claim('db-scratch')).metadata.ownerReferences).toMatchObject([{ kind: 'Pod', name: 'db' }])
  })
})
