import { Registry } from 'prom-client'
import { afterEach, expect, it } from 'vitest'
import { createSchedulerMetrics } from './metrics.ts'
import { gi, type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let trial: SchedulerFixture
afterEach(() => trial.stop())

it('CAP-12 attempts, waiting pods and failed bindings are counted under the names operators know', async () => {
  const registry = new Registry()
  trial = await startSchedulerFixture({ schedulerMetrics: createSchedulerMetrics(registry) })
  const value = async (line: string) =>
    Number(
      (await registry.metrics())
        .split('\n')
        .find((one) => one.startsWith(`${line} `))
        ?.slice(line.length + 1) ?? 'NaN',
    )
  await trial.aClass('local')
  await trial.aNode('n1')
  await trial.aPod('web')
  await trial.until(() => trial.nodeOf('web'), 'a node')
  await trial.aPod('big', { requests: { cpu: '999' } })
  await trial.until(() => trial.message('big'), 'the reason')
  expect(await value('scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}')).toBe(1)
  expect(await value('scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"}')).toBe(1)
  expect(await value('scheduler_pending_pods{queue="unschedulable"}')).toBe(1)
  expect(await value('scheduler_pending_pods{queue="active"}')).toBe(0)
  const attempt = 'scheduler_scheduling_attempt_duration_seconds_count{result="scheduled",profile="default-scheduler"}'
  expect(await value(attempt)).toBe(1)

  await trial.aClaim('data')
  await trial.aPod('db', { claims: ['data'] })
  await trial.until(() => trial.storage.refused.length > 0, 'the driver to refuse')
  await trial.until(
    async () => (await value('scheduler_volume_scheduling_stage_error_total{operation="bind"}')) > 0,
    'it to count',
  )
  trial.storage.free.set('n1', gi(10))
  await trial.until(() => trial.nodeOf('db'), 'a node')
})
