// Tests scheduling by storage capacity with `stowage up`, HTTP, and a CSI driver in its own process: the three examples of
// the design document, failures between selecting a node and creating the volume, and invalid input.
// scheduling-processes.test.ts runs the components in their own processes.
import { afterEach, describe, expect, it } from 'vitest'
import {
  CAPACITIES,
  CLAIMS,
  CSI_DRIVERS,
  CSI_NODES,
  claimSpec,
  createClaim,
  createClass,
  createNode,
  createPod,
  DRIVER_NAME,
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
  startUpWithDriver,
  stopAll,
  VOLUMES,
  waitForCapacities,
  waitForMessage,
  waitUntilScheduled,
} from './helpers/pools-cluster.ts'

afterEach(stopAll)

describe('the examples of the design document', () => {
  it('CAP-4 CAP-11 CAP-12 CAP-15 local storage has a segment per node, and a pod waits until one has capacity', async () => {
    await startUpWithDriver({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
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

  it('CAP-6 CAP-15 one pool reports different capacity for classes with different redundancy', async () => {
    await startUpWithDriver({ segments: ['host=n1'], sizeGi: 10 })
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

  it('CAP-4 CAP-15 network storage has one capacity object per region and class', async () => {
    await startUpWithDriver({ segments: ['region=east', 'region=west'], sizeGi: 20 })
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
    // A later pod on the claim may run on any node of the region.
    await createPod('later', { claims: ['east-data'] })
    expect(await waitUntilScheduled('later')).toMatch(/^e/)
  })
})

describe('between selecting a node and creating the volume', () => {
  const startTwoNodes = async () => {
    await startUpWithDriver({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
    await createClass('local')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi')
  }

  it('CAP-15 PLUS-3 considers all volumes of a pod together', async () => {
    await startTwoNodes()
    await createPod('first', { ephemeral: { a: claimSpec(3, 'local') } })
    const usedNode = await waitUntilScheduled('first')
    await createPod('two', { ephemeral: { a: claimSpec(5, 'local'), b: claimSpec(5, 'local') } })
    expect(await waitUntilScheduled('two')).not.toBe(usedNode)
    await createPod('three', { ephemeral: { a: claimSpec(4, 'local'), b: claimSpec(4, 'local') } })
    await waitForMessage('three', `2 ${NO_SPACE}`)
    expect((await listCalls('CreateVolume')).every(({ outcome }) => outcome === 'OK')).toBe(true)
  })

  it('CAP-12 reports the node and the claim if a bound claim restricts the pod to a full node', async () => {
    await startTwoNodes()
    await createClaim('data', 4, 'local')
    await createPod('first', { claims: ['data'] })
    const nodeName = await waitUntilScheduled('first')
    await createPod('neighbour', { ephemeral: { a: claimSpec(5, 'local') }, nodeSelector: { host: nodeName } })
    await waitUntilScheduled('neighbour')
    await remove(`${PODS}/first`)
    await createClaim('log', 8, 'local')
    await createPod('second', { claims: ['data', 'log'] })
    const message = await waitForMessage('second', 'already has its volume')
    expect(message).toContain(
      `Claim "data" already has its volume on "${nodeName}", where no volume is available for "log"`,
    )
    expect(message).toContain('0/2 nodes are available')
    await remove(`${PODS}/neighbour`)
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    await remove(`${CLAIMS}/log`)
    await createClaim('log', 5, 'local')
    expect(await waitUntilScheduled('second')).toBe(nodeName)
  })

  it('CAP-13 moves the pod to another node after RESOURCE_EXHAUSTED, and leaves no volume behind', async () => {
    await startTwoNodes()
    const fullPool = { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'the pool is full' } as const
    await driver.control.setRules([{ method: 'CreateVolume', times: 1, effect: fullPool }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    const node = await waitUntilScheduled('a')
    const [rejectedCall, succeededCall] = await listCalls('CreateVolume')
    expect([rejectedCall?.outcome, succeededCall?.outcome]).toEqual(['RESOURCE_EXHAUSTED', 'OK'])
    const preferredSegment = (call: any) =>
      Object.values(call.request.accessibilityRequirements.preferred[0].segments)[0]
    expect(preferredSegment(succeededCall)).toBe(node)
    expect(preferredSegment(rejectedCall)).not.toBe(node)
    await remove(`${PODS}/a`)
    await pollUntil(async () => (await listDriverVolumes()).length === 0 && (await list(VOLUMES)).length === 0)
  })

  it('CAP-13 CAP-14 leaves no claim or volume behind if a pod is deleted during provisioning', async () => {
    await startTwoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hangingCount > 0)
    await remove(`${PODS}/a`)
    await driver.control.setRules([])
    await driver.control.release()
    await pollUntil(async () => (await list(CLAIMS)).length === 0 && (await listDriverVolumes()).length === 0)
    await pollUntil(async () => (await list(VOLUMES)).length === 0)
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi')
  })

  it('CAP-13 recreates ephemeral volumes on another node if the pod cannot run on the first', async () => {
    await startTwoNodes()
    await createPod('first', { ephemeral: { a: claimSpec(3, 'local') }, nodeSelector: { host: 'n1' } })
    await waitUntilScheduled('first')
    await waitForCapacities('local n1: 7Gi', 'local n2: 10Gi')
    const capacitiesPath = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
    const nodeTopology = { matchLabels: { host: 'n1' } }
    const wrongReport = {
      metadata: { name: 'wrong-report' },
      storageClassName: 'local',
      nodeTopology,
      capacity: '100Gi',
    }
    await post(capacitiesPath, wrongReport) // reports more than the pool has
    await createPod('two', { ephemeral: { a: claimSpec(5, 'local'), b: claimSpec(5, 'local') } })
    expect(await waitUntilScheduled('two')).toBe('n2')
    expect((await listCalls('CreateVolume')).length).toBeGreaterThan(3) // at least one volume was created and replaced
    await pollUntil(async () => (await listDriverVolumes()).length === 3)
    expect((await listDriverVolumes()).filter(({ segments }) => segments?.host === 'n2')).toHaveLength(2)
  })

  it('CAP-13 creates a volume once if the driver crashes during CreateVolume', async () => {
    await startTwoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hangingCount > 0)
    await driver.kill()
    await driver.start()
    const node = await waitUntilScheduled('a')
    expect((await listDriverVolumes()).map(({ segments }) => segments)).toEqual([{ host: node }])
  })

  it('CAP-13 provisions for a pod that sets spec.nodeName, without the scheduler', async () => {
    await startTwoNodes()
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') }, nodeName: 'n2' })
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    expect((await listDriverVolumes())[0]?.segments).toEqual({ host: 'n2' })
    await pollUntil(async () => (await get(`${CLAIMS}/a-scratch`)).status?.phase === 'Bound')
  })

  it('CAP-13 moves the pod to another node if its node is deleted during provisioning', async () => {
    await startTwoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await createPod('a', { ephemeral: { scratch: claimSpec(5, 'local') } })
    await pollUntil(async () => (await driver.control.inspect()).hangingCount > 0)
    const claim = await get(`${CLAIMS}/a-scratch`)
    const deletedNode = claim.metadata.annotations['volume.kubernetes.io/selected-node']
    await remove(`${NODES}/${deletedNode}`)
    await remove(`${CSI_NODES}/${deletedNode}`)
    await driver.control.setRules([])
    await driver.control.release()
    const node = await waitUntilScheduled('a')
    expect(node).not.toBe(deletedNode)
    await pollUntil(async () => (await listDriverVolumes()).length === 1)
    expect((await listDriverVolumes())[0]?.segments).toEqual({ host: node })
    await waitForCapacities(`local ${node}: 5Gi`)
  })
})

describe('an unschedulable pod', () => {
  it('CAP-12 is not retried after unrelated changes', async () => {
    await startUpWithDriver({ segments: ['host=n1', 'host=n2'], sizeGi: 10 })
    await createClass('local')
    await createClass('other')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    await waitForCapacities('local n1: 10Gi', 'local n2: 10Gi', 'other n1: 10Gi', 'other n2: 10Gi')
    await createPod('big', { ephemeral: { scratch: claimSpec(50, 'local') } })
    await waitForMessage('big', `2 ${NO_SPACE}`)
    const attemptsBefore = await countAttempts()
    await post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'notes' }, data: { a: 'b' } })
    await post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await createClass('unrelated')
    await createClaim('unused', 1, 'local')
    await patch(`${PODS}/big`, { metadata: { labels: { seen: 'yes' } } })
    await patch(`${NODES}/n1`, { metadata: { annotations: { seen: 'yes' } } })
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Heartbeat' }]
    await patch(`${NODES}/n1/status`, { status: { conditions } })
    const otherCapacity = { storageClassName: 'other', nodeTopology: {}, capacity: '1Ti' }
    await post('/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities', {
      metadata: { name: 'of-another-class' },
      ...otherCapacity,
    })
    // This pod is scheduled after the scheduler has handled all earlier events, and counts as one attempt.
    await createPod('small', { claims: ['unused'] })
    await waitUntilScheduled('small')
    expect(await countAttempts()).toMatchObject({ unschedulable: attemptsBefore.unschedulable, scheduled: 1 })
  })
})

/** Returns the number of scheduling attempts by result. */
async function countAttempts(): Promise<Record<string, number>> {
  const { text } = await server.call('GET', '/metrics')
  const lines = [...text.matchAll(/^scheduler_schedule_attempts_total\{result="(\w+)",profile="[\w-]*"\} (\d+)$/gm)]
  return Object.fromEntries(lines.map(([, result, count]) => [result, Number(count)]))
}

describe('invalid input', () => {
  it('CAP-7 CAP-11 CAP-12 is reported on the pod, and other pods are scheduled', async () => {
    await startUpWithDriver({ segments: ['host=n1'], sizeGi: 10 })
    await createClass('local')
    await createNode('n1', { host: 'n1' })
    await createNode('n2', { host: 'elsewhere' }) // outside the driver's topology
    await waitForCapacities('local n1: 10Gi')
    const capacitiesPath = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
    const createCapacity = (name: string, parts: object) =>
      server.call('POST', capacitiesPath, { metadata: { name }, storageClassName: 'local', ...parts })
    const otherTopology = { nodeTopology: { matchLabels: { host: 'elsewhere' } } }
    expect((await createCapacity('absurd', { ...otherTopology, capacity: '900E' })).status).toBe(201)
    expect((await createCapacity('no-topology', { capacity: '1Ti' })).status).toBe(201)
    expect(
      (await createCapacity('of-no-class', { ...otherTopology, storageClassName: 'deleted', capacity: '1Ti' })).status,
    ).toBe(201)
    expect(
      (await createCapacity('conflicting', { nodeTopology: { matchLabels: { host: 'n1' } }, capacity: '1' })).status,
    ).toBe(201)
    expect((await createCapacity('negative', { ...otherTopology, capacity: '-1Gi' })).status).toBe(422)
    expect((await createCapacity('no-number', { ...otherTopology, capacity: 'much' })).status).toBe(400)

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
    // The scheduler uses the capacity object "absurd", and the driver rejects the volume.
    await pollUntil(async () =>
      (await listCalls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'),
    )
    await remove(`${capacitiesPath}/absurd`)
    await waitForMessage('too-big', NO_SPACE)
    const names = (await list(CAPACITIES)).map(({ metadata }) => metadata.name)
    expect(names).toEqual(expect.arrayContaining(['no-topology', 'of-no-class', 'conflicting']))
    await createClaim('missing', 1, 'local')
    expect(await waitUntilScheduled('no-claim')).toBe('n1')
  })
})

describe('a driver that has not opted in to capacity tracking', () => {
  it('CAP-2 CAP-11 has its capacity ignored until it opts in', async () => {
    await startUpWithDriver({ segments: ['host=n1'], sizeGi: 10 })
    await patch(`${CSI_DRIVERS}/${DRIVER_NAME}`, { spec: { storageCapacity: false } })
    await createClass('local')
    await createNode('n1', { host: 'n1' })
    await createPod('a', { ephemeral: { scratch: claimSpec(100, 'local') } })
    await pollUntil(async () =>
      (await listCalls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'),
    )
    await patch(`${CSI_DRIVERS}/${DRIVER_NAME}`, { spec: { storageCapacity: true } })
    await waitForMessage('a', NO_SPACE)
  })
})
