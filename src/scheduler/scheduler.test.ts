import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { podKind } from '../api/kinds/pod/pod.ts'
import { ApiError } from '../api/status-error.ts'
import { type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let trial: SchedulerFixture
beforeEach(async () => {
  trial = await startSchedulerFixture()
})
afterEach(() => trial.stop())

describe('the scheduler', () => {
  it('CAP-19 gives a pod a node, and says so', async () => {
    await trial.aNode('n1')
    await trial.aPod('web')
    await trial.until(() => trial.nodeOf('web'), 'a node')
    await trial.until(() => trial.told('web').length > 0, 'an event')
    expect(trial.told('web')).toEqual(['Normal Scheduled: Successfully assigned default/web to n1'])
    expect((await trial.pod('web')).status?.conditions).toMatchObject([{ type: 'PodScheduled', status: 'True' }])
  })

  it('CAP-19 leaves pods of other schedulers, gated pods and pods with a node alone', async () => {
    await trial.aNode('n1')
    await trial.aPod('foreign', { spec: { schedulerName: 'someone-else' } })
    await trial.aPod('gated', { spec: { schedulingGates: [{ name: 'example.com/wait' }] } })
    await trial.aPod('placed', { spec: { nodeName: 'n7' } })
    await trial.aPod('ours', { spec: { schedulerName: 'stowage-scheduler' } })
    await trial.until(() => trial.nodeOf('ours'), 'a node')
    expect(trial.scheduler.attempts).toBe(1)
    expect(await trial.nodeOf('foreign')).toBe(undefined)
    expect(await trial.nodeOf('gated')).toBe(undefined)
    await trial.client.patch<any>(
      podKind,
      { namespace: 'default', name: 'gated' },
      { type: 'merge', body: { spec: { schedulingGates: null } } },
    )
    await trial.until(() => trial.nodeOf('gated'), 'a node once the gate is gone')
  })

  it('CAP-12 a pod that fits nowhere says how many nodes refused it and why', async () => {
    await trial.aNode('small', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await trial.aNode('closed', { spec: { unschedulable: true } })
    await trial.aNode('tainted', { spec: { taints: [{ key: 'only', value: 'gpu', effect: 'NoSchedule' }] } })
    await trial.aPod('big', { requests: { cpu: '4', memory: '2Gi' } })
    await trial.until(() => trial.message('big'), 'the reason')
    const message =
      '0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), ' +
      '1 node(s) were unschedulable.'
    expect(await trial.message('big')).toBe(message)
    expect((await trial.pod('big')).status?.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' },
    ])
    expect(trial.told('big')).toEqual([`Warning FailedScheduling: ${message}`])
  })

  it('CAP-12 without any node the pod says so, and goes to the first one that comes', async () => {
    await trial.aPod('early')
    await trial.until(() => trial.message('early'), 'the reason')
    expect(await trial.message('early')).toBe('no nodes available to schedule pods')
    await trial.aNode('n1')
    await trial.until(() => trial.nodeOf('early'), 'a node')
  })

  it('CAP-12 a pod is tried again when another leaves its node, not before', async () => {
    await trial.aNode('n1', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await trial.aPod('first', { requests: { cpu: '1' } })
    await trial.until(() => trial.nodeOf('first'), 'a node')
    await trial.aPod('second', { requests: { cpu: '1' } })
    await trial.until(() => trial.message('second'), 'the reason')
    const { attempts } = trial.scheduler
    await trial.trial.clock.advance(3_600_000)
    await trial.settle()
    expect(trial.scheduler.attempts).toBe(attempts)
    await trial.trial.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await trial.until(() => trial.nodeOf('second'), 'a node')
    expect(trial.scheduler.attempts).toBe(attempts + 1)
  })

  it('CAP-12 pods alike are judged once for all, and each goes as soon as there is room for it', async () => {
    await trial.aNode('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    for (let i = 0; i < 6; i++) await trial.aPod(`p${i}`, { requests: { cpu: '1' } })
    await trial.until(async () => (await trial.message('p5')) && (await trial.nodeOf('p1')), 'four to wait')
    await trial.aNode('n2', { allocatable: { cpu: '3', memory: '8Gi', pods: '10' } })
    const placed = async () => (await Promise.all([0, 1, 2, 3, 4, 5].map((i) => trial.nodeOf(`p${i}`)))).filter(Boolean)
    await trial.until(async () => (await placed()).length === 5, 'five to be placed')
    await trial.aNode('n3')
    await trial.until(async () => (await placed()).length === 6, 'all to be placed')
  })

  it('CAP-17 an API server that refuses writes delays a pod and no more', async () => {
    let isDown = true
    await trial.stop()
    trial = await startSchedulerFixture({
      through: (client) => ({
        ...client,
        create: async (...args: any[]) => {
          if (isDown) throw new ApiError(503, 'ServiceUnavailable', 'the server is down')
          return (client.create as any)(...args)
        },
      }),
    })
    await trial.aNode('n1')
    await trial.aPod('web')
    await trial.until(() => trial.scheduler.queuedPods()[0]?.state === 'backoff', 'the pod to wait')
    expect(trial.scheduler.queuedPods()[0]).toMatchObject({ message: 'the server is down', attempts: 1 })
    await trial.trial.clock.advance(10_000)
    isDown = false
    await trial.until(() => trial.nodeOf('web'), 'a node')
  })

  it('CAP-12 CAP-17 a pod that could not be told why it waits is told later, without another try', async () => {
    let refused = 0
    await trial.stop()
    trial = await startSchedulerFixture({
      through: (client) => ({
        ...client,
        patch: async (...args: any[]) => {
          if (refused++ < 3) throw new ApiError(503, 'ServiceUnavailable', 'the server is down')
          return (client.patch as any)(...args)
        },
      }),
    })
    await trial.aPod('web')
    await trial.until(() => trial.message('web'), 'the pod to say why it waits')
    expect(await trial.message('web')).toBe('no nodes available to schedule pods')
    expect(trial.scheduler.attempts).toBe(1)
  })

  it('CAP-19 higher priority goes first', async () => {
    await trial.aPod('low', { spec: { priority: 1 }, requests: { cpu: '1' } })
    await trial.aPod('high', { spec: { priority: 9 }, requests: { cpu: '1' } })
    await trial.until(async () => (await trial.message('low')) && (await trial.message('high')), 'both to wait')
    await trial.aNode('n1', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await trial.until(() => trial.nodeOf('high'), 'the more important one to be placed')
    expect(await trial.nodeOf('low')).toBe(undefined)
  })
})
