import { Registry } from 'prom-client'
import { afterEach, expect, it } from 'vitest'
import { createSchedulerMetrics } from './metrics.ts'
import { gi, type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let fixture: SchedulerFixture
afterEach(() => fixture.stop())

it('CAP-12 counts attempts, pending pods and failed bindings under the names of kube-scheduler', async () => {
  const registry = new Registry()
  fixture = await startSchedulerFixture({ schedulerMetrics: createSchedulerMetrics(registry) })
  const value = async (line: string) =>
    Number(
      (await registry.metrics())
        .split('\n')
        .find((one) => one.startsWith(`${line} `))
        ?.slice(line.length + 1) ?? 'NaN',
    )
  await fixture.createClass('local')
  await fixture.createNode('n1')
  await fixture.createPod('web')
  await fixture.until(() => fixture.nodeOf('web'), 'a node')
  await fixture.createPod('big', { requests: { cpu: '999' } })
  await fixture.until(() => fixture.message('big'), 'the reason')
  expect(await value('scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}')).toBe(1)
  expect(await value('scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"}')).toBe(1)
  expect(await value('scheduler_pending_pods{queue="unschedulable"}')).toBe(1)
  expect(await value('scheduler_pending_pods{queue="active"}')).toBe(0)
  const attempt = 'scheduler_scheduling_attempt_duration_seconds_count{result="scheduled",profile="default-scheduler"}'
  expect(await value(attempt)).toBe(1)

  await fixture.createClaim('data')
  await fixture.createPod('db', { claims: ['data'] })
  await fixture.until(() => fixture.storage.refused.length > 0, 'the driver to refuse')
  await fixture.until(
    async () => (await value('scheduler_volume_scheduling_stage_error_total{operation="bind"}')) > 0,
    'the failure to be counted',
  )
  fixture.storage.free.set('n1', gi(10))
  await fixture.until(() => fixture.nodeOf('db'), 'a node')
})
