import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { podKind } from '../api/kinds/pod/pod.ts'
import { createSchedulerMetrics } from './metrics.ts'
import { gi, HOST, type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let fixture: SchedulerFixture
afterEach(() => fixture.stop())

/** Starts a scheduler. Returns a function that reads a sample of its metrics. */
async function startWithMetrics() {
  const registry = new Registry()
  fixture = await startSchedulerFixture({ schedulerMetrics: createSchedulerMetrics(registry) })
  return async (sample: string): Promise<number> => {
    const lines = (await registry.metrics()).split('\n')
    const line = lines.find((candidate) => candidate.startsWith(`${sample} `))
    return Number(line?.slice(sample.length + 1) ?? 'NaN')
  }
}

describe('the scheduler metrics', () => {
  it('SYS-11 count attempts, pending pods and failed bindings under the names of kube-scheduler', async () => {
    const readSample = await startWithMetrics()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createPod('web')
    await fixture.waitUntil(() => fixture.nodeOf('web'), 'the pod to be bound')
    await fixture.createPod('big', { requests: { cpu: '999' } })
    await fixture.waitUntil(() => fixture.message('big'), 'the message to be reported')
    expect(await readSample('scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}')).toBe(
      1,
    )
    expect(
      await readSample('scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"}'),
    ).toBe(1)
    expect(await readSample('scheduler_pending_pods{queue="unschedulable"}')).toBe(1)
    expect(await readSample('scheduler_pending_pods{queue="active"}')).toBe(0)
    const attempt =
      'scheduler_scheduling_attempt_duration_seconds_count{result="scheduled",profile="default-scheduler"}'
    expect(await readSample(attempt)).toBe(1)

    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await fixture.waitUntil(() => fixture.storage.rejectedRequests.length > 0, 'the driver to reject the volume')
    await fixture.waitUntil(
      async () => (await readSample('scheduler_volume_scheduling_stage_error_total{operation="bind"}')) > 0,
      'the failure to be counted',
    )
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
  })

  it('SYS-11 count an attempt as scheduled only when the pod is bound, and as an error if the driver has no space', async () => {
    const readSample = await startWithMetrics()
    const attempts = (result: string) =>
      readSample(`scheduler_schedule_attempts_total{result="${result}",profile="default-scheduler"}`)
    await fixture.createClass('local') // no CSIDriver: capacity is not tracked
    await fixture.createNode('n1')
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await fixture.waitUntil(() => fixture.storage.rejectedRequests.length >= 3, 'three rejections')
    await fixture.waitUntil(async () => (await attempts('error')) >= 3, 'three failed attempts')
    expect(await attempts('scheduled')).toBe(Number.NaN)
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
    await fixture.waitUntil(async () => (await attempts('scheduled')) === 1, 'the successful attempt')
  })

  it('SYS-11 include reservations and pending pods of the running scheduler only', async () => {
    const readSample = await startWithMetrics()
    const reservations = () => readSample('stowage_scheduler_capacity_reservations')
    const pendingPods = () => readSample('scheduler_pending_pods{queue="unschedulable"}')
    await fixture.createDriver()
    await fixture.createClass('local')
    await fixture.createNode('n1')
    await fixture.createCapacity('n1', { nodeTopology: { matchLabels: { [HOST]: 'n1' } }, capacity: '10Gi' })
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'] })
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
    await fixture.createPod('big', { requests: { cpu: '999' } })
    await fixture.waitUntil(() => fixture.message('big'), 'the message to be reported')
    expect([await reservations(), await pendingPods()]).toEqual([1, 1])

    await fixture.client.delete(podKind, { namespace: 'default', name: 'big' })
    await fixture.restart()
    await fixture.settle()
    expect([await reservations(), await pendingPods()]).toEqual([0, 0])
  })
})
