// Schedules pods where their volumes fit, as a user sees it: `stowage up`, HTTP, and a CSI driver in its own process. Covers
// the three examples of the design document, failures between selecting a node and creating the volume, and invalid
// input. scheduling-processes.test.ts runs every component in its own process.
import { afterEach, describe, expect, it } from 'vitest'
import {
  CAPACITIES,
  CLAIMS,
  CSI_NODES,
  claimSpec,
  createClaim,
  createClass,
  createNode,
  createPod,
  DRIVER,
  DRIVERS,
  driver,
  get,
  list,
  listCalls,
  listDriverVolumes,
  NO_SPACE,
  NODES,
  PODS,
  patch,
  pollUntil,
  post,
  remove,
  server,
  startUp,
  stopAll,
  VOLUMES,
  waitForCapacities,
  waitForMessage,
  waitUntilScheduled,
} from './helpers/pools-cluster.ts'

afterEach(stopAll)

describe('the examples of the design document', () => {
  it('CAP-4 CAP-11 CAP-12 CAP-15 local storage: a segment per node, and a pod waits until one has capacity', async () => {
    await startUp({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
    await createClass('local')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi')
    const scratch = { scratch: claimSpec(7, 'local') }
    await createPod('a', { ephemeral: scratch })
    await createPod('b', { ephemeral: scratch })
    const nodes = [await waitUntilScheduled('a'), await waitUntilScheduled('b')]
    expect(nodes.sort()).toEqual(['n1', 'n2'])
    await waitForCapacities('local n1: 3Gi', 'local n2: 3Gi')
    await createPod('c', { ephemeral: scratch })
    expect(await waitForMessage('c', NO_SPACE)).toBe(
      `0/2 nodes are available: 2 ${NO_SPACE}. A volume of 7Gi of class "local" is requested, but at most 3Gi is free ` +
        'on any node.',
    )
    await remove(`${PODS}/a`)
    await waitUntilScheduled('c')
    expect(await listDriverVolumes()).toHaveLength(2)
  })

  it('CAP-6 CAP-15 one pool reports different capacity for classes that differ in cost', async () => {
    await startUp({ segments: ['host=n1'], sizeGi: 10 })
    await createClass('striped')
    await createClass('mirrored', { parameters: { copies: '2' } })
    await createNode('n1', { host: 'n1' })
    await waitForCapacities('mirrored n1: 5Gi', 'striped n1: 10Gi')
    await createPod('big', { ephemeral: { scratch: claimSpec(6, 'mirrored') } })
    await waitForMessage('big', `1 ${NO_SPACE}`)
    await createPod('safe', { ephemeral: { scratch: claimSpec(4, 'mirrored') } })
    await waitUntilScheduled('safe')
    await waitForCapacities('mirrored n1: 1Gi', 'striped n1: 2Gi')
    await createPod('fast', { ephemeral: { scratch: claimSpec(2, 'striped') } })
    await waitUntilScheduled('fast')
    await waitForCapacities('mirrored n1: 0', 'striped n1: 0')
    expect((await listCalls('CreateVolume')).every(({ outcome }) => outcome === 'OK')).toBe(true)
  })

  it('CAP-4 CAP-15 network storage: one object per region and class, shared by the nodes of the region', async () => {
    await startUp({ segments: ['region=east', 'region=west'], sizeGi: 20 })
    await createClass('net')
    for (const [name, region] of Object.entries({ e1: 'east', e2: 'east', w1: 'west' }))
      await createNode(name, { region })
    await waitForCapacities('net east: 20Gi', 'net west: 20Gi')
    await createClaim('east-data', 15, 'net')
    await createPod('e', { claims: ['east-data'], nodeSelector: { region: 'east' } })
    expect(await waitUntilScheduled('e')).toMatch(/^e/)
    await waitForCapacities('net east: 5Gi', 'net west: 20Gi')
    await createPod('w', { ephemeral: { scratch: claimSpec(15, 'net') } })
    expect(await waitUntilScheduled('w')).toBe('w1')
    await waitForCapacities('net east: 5Gi', 'net west: 5Gi')
    // A later pod on the claim runs on any node of its region.
    await createPod('later', { claims: ['east-data'] })
    expect(await waitUntilScheduled('later')).toMatch(/^e/)
  })
})

describe('between selecting a node and creating the volume', () => {
  const twoNodes = async () => {
    await startUp({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
    await createClass('local')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi')
  }

  it('CAP-15 PLUS-3 fits several volumes of one pod together', async () => {
    await twoNodes()
    await createPod('first', { ephemeral: { a: claimSpec(3, 'local') } })
    const taken = await waitUntilScheduled('first')
    await createPod('two', { ephemeral: { a: claimSpec(5, 'local'), b: claimSpec(5, 'local') } })
    expect(await waitUntilScheduled('two')).not.toBe(taken)
    await createPod('three', { ephemeral: { a: claimSpec(4, 'local'), b: claimSpec(4, 'local') } })
    await waitForMessage('three', `2 ${NO_SPACE}`)
    expect((await listCalls('CreateVolume')).every(({ outcome }) => outcome === 'OK')).toBe(true)
  })

  it('CAP-16 a pod held on a node by a bound claim reports the node and the claim', async () => {
    await twoNodes()
    await createClaim('data', 4, 'local')
    await createPod('first', { claims: ['data'] })
    const where = await waitUntilScheduled('first')
    await createPod('neighbour', { ephemeral: { a: claimSpec(5, 'local') }, nodeSelector: { host: where } })
    await waitUntilScheduled('neighbour')
    await remove(`${PODS}/first`)
    await createClaim('log', 8, 'local')
    await createPod('second', { claims: ['data', 'log'] })
    const said = await waitForMessage('second', 'already has its volume')
    expect(said).toContain(`Claim "data" already has its volume on "${where}", where no volume is available for "log"`)
    expect(said).toContain('0/2 nodes are available')
    await remove(`${PODS}/neighbour`)
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    await remove(`${CLAIMS}/log`)
    await createClaim('log', 5, 'local')
    expect(await waitUntilScheduled('second')).toBe(where)
  })

  it('CAP-13 RESOURCE_EXHAUSTED moves the pod to another node, and leaves nothing behind', async () => {
    await twoNodes()
    const full = { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'full after all' } as const
    await driver.control.setRules([{ method: 'CreateVolume', times: 1, effect: full }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    const node = await waitUntilScheduled('a')
    const [refused, made] = await listCalls('CreateVolume')
    expect([refused?.outcome, made?.outcome]).toEqual(['RESOURCE_EXHAUSTED', 'OK'])
    const preferred = (call: any) => Object.values(call.request.accessibilityRequirements.preferred[0].segments)[0]
    expect(preferred(made)).toBe(node)
    expect(preferred(refused)).not.toBe(node)
    await remove(`${PODS}/a`)
    await pollUntil(async () => (await listDriverVolumes()).length === 0 && (await list(VOLUMES)).length === 0)
  })

  it('CAP-13 CAP-14 a pod deleted during provisioning leaves nothing behind', async () => {
    await twoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hanging > 0)
    await remove(`${PODS}/a`)
    await driver.control.setRules([])
    await driver.control.release()
    await pollUntil(async () => (await list(CLAIMS)).length === 0 && (await listDriverVolumes()).length === 0)
    await pollUntil(async () => (await list(VOLUMES)).length === 0)
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi')
  })

  it('CAP-16 recreates ephemeral volumes that hold a pod where it cannot run on a node where all fit', async () => {
    await twoNodes()
    await createPod('first', { ephemeral: { a: claimSpec(3, 'local') }, nodeSelector: { host: 'n1' } })
    await waitUntilScheduled('first')
    await waitForCapacities('local n1: 7Gi', 'local n2: 10Gi')
    const namespaced = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
    const nodeTopology = { matchLabels: { host: 'n1' } }
    const promise = { metadata: { name: 'promise' }, storageClassName: 'local', nodeTopology, capacity: '100Gi' }
    await post(namespaced, promise) // a report that is wrong
    await createPod('two', { ephemeral: { a: claimSpec(5, 'local'), b: claimSpec(5, 'local') } })
    expect(await waitUntilScheduled('two')).toBe('n2')
    expect((await listCalls('CreateVolume')).length).toBeGreaterThan(3) // at least one was created and not used
    await pollUntil(async () => (await listDriverVolumes()).length === 3)
    expect((await listDriverVolumes()).filter(({ segments }) => segments?.host === 'n2')).toHaveLength(2)
  })

  it('CAP-13 a driver that crashes during CreateVolume: the pod waits, and the volume is created once', async () => {
    await twoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hanging > 0)
    await driver.kill()
    await driver.start()
    const node = await waitUntilScheduled('a')
    expect((await listDriverVolumes()).map(({ segments }) => segments)).toEqual([{ host: node }])
  })

  it('CAP-13 provisions for a pod that sets spec.nodeName, without the scheduler', async () => {
    await twoNodes()
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') }, nodeName: 'n2' })
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    expect((await listDriverVolumes())[0]?.segments).toEqual({ host: 'n2' })
    await pollUntil(async () => (await get(`${CLAIMS}/a-scratch`)).status?.phase === 'Bound')
  })

  it('CAP-13 a node deleted during provisioning: the pod moves to another node', async () => {
    await twoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hanging > 0)
    const claim = await get(`${CLAIMS}/a-scratch`)
    const lost = claim.metadata.annotations['volume.kubernetes.io/selected-node']
    await remove(`${NODES}/${lost}`)
    await remove(`${CSI_NODES}/${lost}`)
    await driver.control.setRules([])
    await driver.control.release()
    const node = await waitUntilScheduled('a')
    expect(node).not.toBe(lost)
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    expect((await listDriverVolumes())[0]?.segments).toEqual({ host: node })
    await waitForCapacities(`local ${node}: 5Gi`)
  })
})

describe('an unschedulable pod', () => {
  it('CAP-12 is not retried for changes that cannot help it', async () => {
    await startUp({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
    await createClass('local')
    await createClass('other')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi', 'other n1: 10Gi', 'other n2: 10Gi')
    await createPod('big', { ephemeral: { scratch: claimSpec(50, 'local') } })
    await waitForMessage('big', `2 ${NO_SPACE}`)
    const before = await attempts()
    await post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'notes' }, data: { a: 'b' } })
    await post('/api/v1/namespaces', { metadata: { name: 'elsewhere' } })
    await createClass('unrelated')
    await createClaim('nobodys', 1, 'local')
    await patch(`${PODS}/big`, { metadata: { labels: { seen: 'yes' } } })
    await patch(`${NODES}/n1`, { metadata: { annotations: { seen: 'yes' } } })
    const conditions = [{ type: 'Ready', status: 'True', reason: 'StillHere' }]
    await patch(`${NODES}/n1/status`, { status: { conditions } })
    const byHand = { storageClassName: 'other', nodeTopology: {}, capacity: '1Ti' }
    await post('/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities', {
      metadata: { name: 'of-another-class' },
      ...byHand,
    })
    // This pod is scheduled at once and counts one, which shows that all earlier events have been handled.
    await createPod('small', { claims: ['nobodys'] })
    await waitUntilScheduled('small')
    expect(await attempts()).toMatchObject({ unschedulable: before.unschedulable, scheduled: 1 })
  })
})

/** Attempts by result. */
async function attempts(): Promise<Record<string, number>> {
  const { text } = await server.call('GET', '/metrics')
  const lines = [...text.matchAll(/^scheduler_schedule_attempts_total\{result="(\w+)",profile="[\w-]*"\} (\d+)$/gm)]
  return Object.fromEntries(lines.map(([, result, count]) => [result, Number(count)]))
}

describe('invalid input', () => {
  it('CAP-7 CAP-11 CAP-12 the pod reports the problem, and others are scheduled', async () => {
    await startUp({ segments: ['host=n1'], sizeGi: 10 })
    await createClass('local')
    await createNode('n1', { host: 'n1' })
    await createNode('n2', { host: 'elsewhere' }) // outside the driver's topology
    await waitForCapacities('local n1: 10Gi')
    const namespaced = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
    const byHand = (name: string, parts: object) =>
      server.call('POST', namespaced, { metadata: { name }, storageClassName: 'local', ...parts })
    const nowhere = { nodeTopology: { matchLabels: { host: 'elsewhere' } } }
    expect((await byHand('absurd', { ...nowhere, capacity: '900E' })).status).toBe(201)
    expect((await byHand('no-topology', { capacity: '1Ti' })).status).toBe(201)
    expect((await byHand('of-no-class', { ...nowhere, storageClassName: 'gone', capacity: '1Ti' })).status).toBe(201)
    expect((await byHand('conflicting', { nodeTopology: { matchLabels: { host: 'n1' } }, capacity: '1' })).status).toBe(
      201,
    )
    expect((await byHand('negative', { ...nowhere, capacity: '-1Gi' })).status).toBe(422)
    expect((await byHand('no-number', { ...nowhere, capacity: 'much' })).status).toBe(400)

    await createPod('no-claim', { claims: ['missing'] })
    await createClaim('classless', 1, 'typo')
    await createPod('no-class', { claims: ['classless'] })
    await createPod('too-big', { ephemeral: { scratch: claimSpec(100, 'local') } })
    await createPod('fine', { ephemeral: { scratch: claimSpec(5, 'local') } })
    expect(await waitUntilScheduled('fine')).toBe('n1')
    expect(await waitForMessage('no-claim', 'missing')).toBe(
      '0/2 nodes are available: persistentvolumeclaim "missing" not found.',
    )
    expect(await waitForMessage('no-class', 'typo')).toContain(
      'claim "classless" names storage class "typo", which does not exist',
    )
    // This is the only object: the scheduler uses it, the driver rejects the volume, and the pod reports that.
    await pollUntil(async () =>
      (await listCalls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'),
    )
    await remove(`${namespaced}/absurd`)
    await waitForMessage('too-big', NO_SPACE)
    const names = (await list(CAPACITIES)).map(({ metadata }) => metadata.name)
    expect(names).toEqual(expect.arrayContaining(['no-topology', 'of-no-class', 'conflicting']))
    await createClaim('missing', 1, 'local')
    expect(await waitUntilScheduled('no-claim')).toBe('n1')
  })

  it('CAP-2 CAP-11 ignores capacity of a driver that has not opted in', async () => {
    await startUp({ segments: ['host=n1'], sizeGi: 10 })
    await patch(`${DRIVERS}/${DRIVER}`, { spec: { storageCapacity: false } })
    await createClass('local')
    await createNode('n1', { host: 'n1' })
    await createPod('a', { ephemeral: { scratch: claimSpec(100, 'local') } })
    await pollUntil(async () =>
      (await listCalls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'),
    )
    await patch(`${DRIVERS}/${DRIVER}`, { spec: { storageCapacity: true } })
    await waitForMessage('a', NO_SPACE)
  })
})
