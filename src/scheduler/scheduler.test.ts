import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { podKind } from '../api/kinds/pod/pod.ts'
import { ApiError } from '../api/status-error.ts'
import { type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture()
})
afterEach(() => fixture.stop())

describe('the scheduler', () => {
  it('binds a pod to a node and records a Scheduled event', async () => {
    await fixture.createNode('n1')
    await fixture.createPod('web')
    await fixture.waitUntil(() => fixture.nodeOf('web'), 'the pod to be bound')
    await fixture.waitUntil(() => fixture.events('web').length > 0, 'an event')
    expect(fixture.events('web')).toEqual(['Normal Scheduled: Successfully assigned default/web to n1'])
    expect((await fixture.pod('web')).status?.conditions).toMatchObject([{ type: 'PodScheduled', status: 'True' }])
  })

  it('CAP-19 ignores pods of other schedulers, pods with a node, and gated pods until the gate is removed', async () => {
    await fixture.createNode('n1')
    await fixture.createPod('foreign', { spec: { schedulerName: 'other-scheduler' } })
    await fixture.createPod('gated', { spec: { schedulingGates: [{ name: 'example.com/wait' }] } })
    await fixture.createPod('placed', { spec: { nodeName: 'n7' } })
    await fixture.createPod('own', { spec: { schedulerName: 'stowage-scheduler' } })
    await fixture.waitUntil(() => fixture.nodeOf('own'), 'the pod to be bound')
    expect(fixture.scheduler.attempts).toBe(1)
    expect(await fixture.nodeOf('foreign')).toBe(undefined)
    expect(await fixture.nodeOf('gated')).toBe(undefined)
    await fixture.client.patch(
      podKind,
      { namespace: 'default', name: 'gated' },
      { type: 'merge', body: { spec: { schedulingGates: null } } },
    )
    await fixture.waitUntil(() => fixture.nodeOf('gated'), 'a node after the gate is removed')
  })

  it('CAP-12 reports how many nodes rejected a pod for each reason', async () => {
    await fixture.createNode('small', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await fixture.createNode('closed', { spec: { unschedulable: true } })
    await fixture.createNode('tainted', { spec: { taints: [{ key: 'only', value: 'gpu', effect: 'NoSchedule' }] } })
    await fixture.createPod('big', { requests: { cpu: '4', memory: '2Gi' } })
    await fixture.waitUntil(() => fixture.message('big'), 'the message to be reported')
    const message =
      '0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), ' +
      '1 node(s) were unschedulable.'
    expect(await fixture.message('big')).toBe(message)
    expect((await fixture.pod('big')).status?.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', observedGeneration: 1 },
    ])
    expect(fixture.events('big')).toEqual([`Warning FailedScheduling: ${message}`])
  })

  it('CAP-12 reports that there are no nodes, and retries when a node is added', async () => {
    await fixture.createPod('early')
    await fixture.waitUntil(() => fixture.message('early'), 'the message to be reported')
    expect(await fixture.message('early')).toBe('no nodes available to schedule pods')
    await fixture.createNode('n1')
    await fixture.waitUntil(() => fixture.nodeOf('early'), 'the pod to be bound')
  })

  it('CAP-12 retries an unschedulable pod when another pod leaves the node, and not periodically', async () => {
    await fixture.createNode('n1', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await fixture.createPod('first', { requests: { cpu: '1' } })
    await fixture.waitUntil(() => fixture.nodeOf('first'), 'the pod to be bound')
    await fixture.createPod('second', { requests: { cpu: '1' } })
    await fixture.waitUntil(() => fixture.message('second'), 'the message to be reported')
    const { attempts } = fixture.scheduler
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.scheduler.attempts).toBe(attempts)
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await fixture.waitUntil(() => fixture.nodeOf('second'), 'the pod to be bound')
    expect(fixture.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-12 schedules the unschedulable pods of an equivalence class when nodes are added on which they fit', async () => {
    await fixture.createNode('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    for (let i = 0; i < 6; i++) await fixture.createPod(`p${i}`, { requests: { cpu: '1' } })
    await fixture.waitUntil(
      async () => (await fixture.message('p5')) && (await fixture.nodeOf('p1')),
      'four pods to be unschedulable',
    )
    await fixture.createNode('n2', { allocatable: { cpu: '3', memory: '8Gi', pods: '10' } })
    const boundPods = async () =>
      (await Promise.all([0, 1, 2, 3, 4, 5].map((i) => fixture.nodeOf(`p${i}`)))).filter(Boolean)
    await fixture.waitUntil(async () => (await boundPods()).length === 5, 'five pods to be bound')
    await fixture.createNode('n3')
    await fixture.waitUntil(async () => (await boundPods()).length === 6, 'all pods to be bound')
  })

  it('CAP-17 retries with backoff while the API server rejects writes', async () => {
    let isDown = true
    await fixture.stop()
    fixture = await startSchedulerFixture({
      wrapClient: (client) => ({
        ...client,
        create: async (...args) => {
          if (isDown) throw new ApiError(503, 'ServiceUnavailable', 'the server is down')
          return client.create(...args)
        },
      }),
    })
    await fixture.createNode('n1')
    await fixture.createPod('web')
    await fixture.waitUntil(() => fixture.scheduler.queuedPods()[0]?.state === 'backoff', 'the backoff')
    expect(fixture.scheduler.queuedPods()[0]).toMatchObject({ message: 'the server is down', attempts: 1 })
    await fixture.server.clock.advance(10_000)
    isDown = false
    await fixture.waitUntil(() => fixture.nodeOf('web'), 'the pod to be bound')
  })

  it('CAP-17 accepts a binding whose response was lost', async () => {
    let bindings = 0
    await fixture.stop()
    fixture = await startSchedulerFixture({
      wrapClient: (client) => ({
        ...client,
        create: async (...args) => {
          const createdObject = await client.create(...args)
          // The response is lost, and the client's retry of the request conflicts.
          if (bindings++ === 0) throw new ApiError(409, 'Conflict', 'the pod is already bound')
          return createdObject
        },
      }),
    })
    await fixture.createNode('n1')
    await fixture.createPod('web')
    await fixture.waitUntil(() => fixture.nodeOf('web'), 'the pod to be bound')
    await fixture.waitUntil(() => fixture.scheduler.queuedPods().length === 0, 'the queue to be empty')
    expect(fixture.events('web').filter((text) => text.startsWith('Warning'))).toEqual([])
  })

  it('CAP-12 CAP-17 retries writing the condition without another scheduling attempt', async () => {
    let patchCalls = 0
    await fixture.stop()
    fixture = await startSchedulerFixture({
      wrapClient: (client) => ({
        ...client,
        patch: async (...args) => {
          if (patchCalls++ < 3) throw new ApiError(503, 'ServiceUnavailable', 'the server is down')
          return client.patch(...args)
        },
      }),
    })
    await fixture.createPod('web')
    await fixture.waitUntil(() => fixture.message('web'), 'the condition')
    expect(await fixture.message('web')).toBe('no nodes available to schedule pods')
    expect(fixture.scheduler.attempts).toBe(1)
  })

  it('schedules the pod with the higher priority first', async () => {
    await fixture.createPriority('one', 1)
    await fixture.createPriority('nine', 9)
    await fixture.createPod('low', { spec: { priorityClassName: 'one' }, requests: { cpu: '1' } })
    await fixture.createPod('high', { spec: { priorityClassName: 'nine' }, requests: { cpu: '1' } })
    await fixture.waitUntil(
      async () => (await fixture.message('low')) && (await fixture.message('high')),
      'both pods to be unschedulable',
    )
    await fixture.createNode('n1', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await fixture.waitUntil(() => fixture.nodeOf('high'), 'the pod with the higher priority to be bound')
    expect(await fixture.nodeOf('low')).toBe(undefined)
  })
})
