import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { isNotFound } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { DRIVER, gi, HOST, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

/** The scheduler's preemption writes, e.g. `mark victim`, `delete victim`, `nominate urgent`. */
let writes: string[]
/** The write with this index and all later ones fail, as if the process had been killed. */
let failsFrom: number
let fixture: SchedulerFixture

const recordWrites = (client: Client): Client => ({
  ...client,
  patch: (kind, ref, patch, options) => {
    const { status } = patch.body as { status?: { conditions?: { type: string }[]; nominatedNodeName?: string | null } }
    const isPreemption = status?.conditions?.[0]?.type === 'DisruptionTarget' || status?.nominatedNodeName !== undefined
    if (kind.kind === 'Pod' && isPreemption) record(`${status?.conditions ? 'mark' : 'nominate'} ${ref.name}`)
    return client.patch(kind, ref, patch, options)
  },
  delete: (kind, ref, options) => {
    if (kind.kind === 'Pod') record(`delete ${ref.name}`)
    return client.delete(kind, ref, options)
  },
})

function record(write: string): void {
  if (writes.length >= failsFrom) throw new Error(`the process was killed before: ${write}`)
  writes.push(write)
}

beforeEach(async () => {
  writes = []
  failsFrom = Number.POSITIVE_INFINITY
  fixture = await startSchedulerFixture({ wrapClient: recordWrites })
  await fixture.createPriority('low', 1)
  await fixture.createPriority('middle', 5)
  await fixture.createPriority('high', 10)
  await fixture.createPriority('polite', 10, { preemptionPolicy: 'Never' })
})
afterEach(() => fixture.stop())

const createNode = (name: string, cpu = '2') =>
  fixture.createNode(name, { allocatable: { cpu, memory: '32Gi', pods: '110' } })
const createPod = (
  name: string,
  priorityClassName: string,
  { cpu = '2', ...fields }: { cpu?: string; spec?: object; claims?: string[] } = {},
) => fixture.createPod(name, { ...fields, requests: { cpu }, spec: { priorityClassName, ...fields.spec } })
const waitUntilBound = (name: string) => fixture.waitUntil(() => fixture.nodeOf(name), `pod ${name} to be bound`)
async function createRunning(name: string, priority: string, fields: Parameters<typeof createPod>[2] = {}) {
  await createPod(name, priority, fields)
  await waitUntilBound(name)
}
/** Ends a pod, as its node agent does. */
const endPod = (name: string) =>
  fixture.client.delete(podKind, { namespace: 'default', name }, { gracePeriodSeconds: 0 })
const findPod = (name: string) =>
  fixture.pod(name).catch((error) => {
    if (isNotFound(error)) return undefined
    throw error
  })
const isBeingDeleted = async (name: string) => (await findPod(name))?.metadata.deletionTimestamp !== undefined
const nominatedNode = async (name: string) => (await fixture.pod(name)).status?.nominatedNodeName
const waitUntilNominated = (name: string, node: string) =>
  fixture.waitUntil(async () => (await nominatedNode(name)) === node, `pod ${name} to be nominated for ${node}`)
const waitForMessage = (name: string, text: string) =>
  fixture.waitUntil(async () => (await fixture.message(name))?.includes(text), `the message of ${name}: ${text}`)

describe('DefaultPreemption', () => {
  it('SYS-27 marks the victim, deletes it with its own grace period, records an event, and nominates the node', async () => {
    await createNode('n1')
    await createRunning('victim', 'low', { spec: { terminationGracePeriodSeconds: 77 } })
    await createPod('urgent', 'high')
    await waitUntilNominated('urgent', 'n1')
    expect(writes).toEqual(['mark victim', 'delete victim', 'nominate urgent'])
    const victim = await fixture.pod('victim')
    expect(victim.metadata.deletionGracePeriodSeconds).toBe(77)
    expect(victim.status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'PreemptionByScheduler',
        message: 'default-scheduler: preempting to accommodate a higher priority pod',
      }),
    )
    const { uid } = (await fixture.pod('urgent')).metadata
    expect(fixture.events('victim')).toContain(`Normal Preempted: Preempted by pod ${uid} on node n1`)
    expect(await fixture.message('urgent')).toBe(
      '0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node n1, preempting 1 victims',
    )
    await endPod('victim')
    await waitUntilBound('urgent')
    expect(await nominatedNode('urgent')).toBeUndefined()
  })

  it('SYS-27 does not preempt pods of equal or higher priority, and reports this', async () => {
    await createNode('n1')
    await createRunning('first', 'high')
    await createPod('second', 'high')
    await waitForMessage('second', 'preemption')
    expect(await fixture.message('second')).toBe(
      '0/1 nodes are available: 1 Insufficient cpu. ' +
        'preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    )
    expect(writes).toEqual([])
  })

  it('SYS-27 does not preempt for a pod with preemptionPolicy Never, but schedules it before pods of lower priority', async () => {
    await createNode('n1')
    await createRunning('victim', 'low')
    await createPod('other', 'middle', { spec: { nodeSelector: { [HOST]: 'n2' } } })
    await createPod('polite', 'polite')
    await waitForMessage('polite', 'preemption')
    expect(await fixture.message('polite')).toBe(
      '0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.',
    )
    expect(writes).toEqual([])
    await endPod('victim')
    await waitUntilBound('polite')
  })

  it('SYS-27 deletes no pods if preemption cannot resolve the rejection', async () => {
    await fixture.createClass('local')
    await fixture.createDriver()
    await fixture.createCapacity('c', { capacity: '1Gi', nodeTopology: { matchLabels: { [HOST]: 'n1' } } })
    fixture.storage.freeBytes.set('n1', gi(1))
    await createNode('n1')
    await fixture.createClaim('small')
    await createRunning('victim', 'low', { claims: ['small'] })
    // The storage of the victim's claim survives the victim, so there is no space for a second volume.
    await fixture.createClaim('data')
    await createPod('urgent', 'high', { claims: ['data'] })
    await waitForMessage('urgent', 'preemption')
    await createPod('elsewhere', 'high', { spec: { nodeSelector: { [HOST]: 'n2' } } })
    await waitForMessage('elsewhere', 'affinity')
    await createPod('huge', 'high', { cpu: '3' })
    await waitForMessage('huge', 'Insufficient cpu')
    expect(writes).toEqual([])
    expect(await fixture.message('huge')).toBe('0/1 nodes are available: 1 Insufficient cpu.')
  })

  it('SYS-27 reserves the space of victims for the preemptor: neither other pods nor other preemptors use it', async () => {
    await createNode('n1')
    await createNode('n2')
    await createRunning('a', 'low')
    await createRunning('b', 'low')
    await createPod('urgent-1', 'high')
    await createPod('urgent-2', 'high')
    await fixture.waitUntil(
      async () => (await nominatedNode('urgent-1')) && (await nominatedNode('urgent-2')),
      'both pods to be nominated',
    )
    expect(await nominatedNode('urgent-1')).not.toBe(await nominatedNode('urgent-2'))
    await createPod('late', 'middle')
    await waitForMessage('late', 'Insufficient cpu')
    await createPod('third', 'high')
    await waitForMessage('third', 'Insufficient cpu')
    expect(writes.filter((write) => write.startsWith('delete'))).toHaveLength(2)
    await endPod('a')
    await endPod('b')
    await waitUntilBound('urgent-1')
    await waitUntilBound('urgent-2')
    expect(await fixture.nodeOf('late')).toBeUndefined()
  })

  it('SYS-27 replaces a nominated pod of lower priority, which is then scheduled elsewhere', async () => {
    await createNode('n1')
    await createRunning('victim', 'low')
    await createPod('first', 'middle')
    await waitUntilNominated('first', 'n1')
    await createPod('urgent', 'high')
    await waitUntilNominated('urgent', 'n1')
    await fixture.waitUntil(
      async () => !(await nominatedNode('first')),
      'the nomination of the first pod to be removed',
    )
    expect(writes.filter((write) => write.startsWith('delete'))).toEqual(['delete victim'])
    await endPod('victim')
    await waitUntilBound('urgent')
    await createNode('n2')
    await waitUntilBound('first')
  })

  it('SYS-27 schedules a pod of lower priority after the preemptor is deleted', async () => {
    await createNode('n1')
    await createRunning('victim', 'low')
    await createPod('urgent', 'high')
    await waitUntilNominated('urgent', 'n1')
    await createPod('waiting', 'middle')
    await waitForMessage('waiting', 'Insufficient cpu')
    await endPod('victim')
    await waitUntilBound('urgent')
    await endPod('urgent')
    await waitUntilBound('waiting')
  })

  it('SYS-27 selects victims again after another pod has left a node', async () => {
    await createNode('n1', '4')
    await createRunning('equal', 'high')
    await createRunning('victim', 'low')
    await createPod('urgent', 'high', { cpu: '4' })
    await waitForMessage('urgent', 'preemption')
    expect(writes).toEqual([])
    await endPod('equal')
    await waitUntilNominated('urgent', 'n1')
    expect(await isBeingDeleted('victim')).toBe(true)
  })

  it('SYS-27 deletes no further victims after the preemptor is deleted', async () => {
    await createNode('n1', '4')
    await createRunning('a', 'low')
    await createRunning('b', 'low')
    failsFrom = 2 // after the first deletion
    await createPod('urgent', 'high', { cpu: '4' })
    await fixture.waitUntil(() => writes.length === 2, 'the first deletion')
    await endPod('urgent')
    failsFrom = Number.POSITIVE_INFINITY
    await fixture.server.clock.advance(60_000)
    await fixture.settle()
    expect(writes.filter((write) => write.startsWith('delete'))).toHaveLength(1)
  })

  it.each([
    ['condition', 0],
    ['deletion', 1],
    ['second condition', 2],
    ['second deletion', 3],
    ['nomination', 4],
  ])('SYS-27 completes a preemption after a crash before the %s', async (_write, count) => {
    await createNode('n1', '4')
    await createNode('n2', '4')
    await createRunning('a', 'low', { spec: { nodeSelector: { [HOST]: 'n1' } } })
    await createRunning('b', 'low', { spec: { nodeSelector: { [HOST]: 'n1' } } })
    await createRunning('c', 'middle', { cpu: '4' })
    failsFrom = count
    await createPod('urgent', 'high', { cpu: '4' })
    await fixture.waitUntil(() => writes.length === count, 'the writes before the crash')
    await fixture.settle()
    await fixture.restart()
    failsFrom = Number.POSITIVE_INFINITY
    await waitUntilNominated('urgent', 'n1')
    for (const name of ['a', 'b']) {
      expect(await isBeingDeleted(name)).toBe(true)
      await endPod(name)
    }
    await waitUntilBound('urgent')
    expect(writes.filter((write) => write.startsWith('delete')).sort()).toEqual(['delete a', 'delete b'])
  })

  it('SYS-27 frees volume slots, and waits for the detachment without deleting more pods', async () => {
    await fixture.createClass('local')
    await fixture.createNode('n1', { allocatable: { cpu: '8', memory: '32Gi', pods: '110' }, volumesMax: 2 })
    fixture.storage.freeBytes.set('n1', gi(10))
    for (const name of ['a', 'b']) {
      await fixture.createClaim(name)
      await createRunning(name, 'low', { claims: [name] })
      const volume = (await fixture.claim(name)).spec?.volumeName
      await fixture.client.create(volumeAttachmentKind, {
        metadata: { name: `va-${name}` },
        spec: { attacher: DRIVER, nodeName: 'n1', source: { persistentVolumeName: volume } },
      })
    }
    await fixture.createClaim('data')
    await createPod('urgent', 'high', { claims: ['data'] })
    await waitUntilNominated('urgent', 'n1')
    const [victim = ''] = writes.filter((write) => write.startsWith('delete')).map((write) => write.split(' ')[1])
    await endPod(victim)
    await waitForMessage('urgent', 'not eligible due to volumes that are being detached from the nominated node.')
    expect(writes.filter((write) => write.startsWith('delete'))).toHaveLength(1)
    await fixture.client.delete(volumeAttachmentKind, { name: `va-${victim}` })
    await waitUntilBound('urgent')
  })

  it('SYS-27 preempts the pod of lower priority that uses a ReadWriteOncePod claim', async () => {
    await fixture.createClass('local')
    await createNode('n1', '8')
    await createNode('n2', '8')
    for (const name of ['n1', 'n2']) fixture.storage.freeBytes.set(name, gi(10))
    await fixture.createClaim('data', { spec: { accessModes: ['ReadWriteOncePod'] } })
    await createRunning('first', 'low', { claims: ['data'] })
    await createRunning('bystander', 'low', { spec: { nodeSelector: { [HOST]: await fixture.nodeOf('first') } } })
    await createPod('equal', 'low', { claims: ['data'] })
    await waitForMessage('equal', 'already in-use by another pod')
    await createPod('urgent', 'high', { claims: ['data'] })
    await waitUntilNominated('urgent', (await fixture.nodeOf('first'))!)
    expect(writes.filter((write) => write.startsWith('delete'))).toEqual(['delete first'])
    await endPod('first')
    await waitUntilBound('urgent')
    expect(await fixture.nodeOf('equal')).toBeUndefined()
    await endPod('urgent')
    await waitUntilBound('equal')
  })

  it('SYS-27 selects victims again if the server rejects a deletion', async () => {
    await createNode('n1')
    await createRunning('victim', 'low')
    failsFrom = 1
    await createPod('urgent', 'high')
    await fixture.waitUntil(() => writes.length === 1, 'the condition to be written')
    await fixture.settle()
    failsFrom = Number.POSITIVE_INFINITY
    await waitUntilNominated('urgent', 'n1')
    expect(await isBeingDeleted('victim')).toBe(true)
  })
})
