import { afterEach, beforeEach, expect, it } from 'vitest'
import { gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let trial: SchedulerFixture
beforeEach(async () => {
  trial = await startSchedulerFixture()
})
afterEach(() => trial.stop())

it('CAP-12 a ReadWriteOncePod claim is for one pod at a time, and goes to the next when that one leaves', async () => {
  await trial.aClass('local')
  for (const name of ['n1', 'n2']) {
    await trial.aNode(name)
    trial.storage.free.set(name, gi(10))
  }
  await trial.aClaim('mine', { spec: { accessModes: ['ReadWriteOncePod'] } })
  await trial.aPod('first', { claims: ['mine'] })
  await trial.until(() => trial.nodeOf('first'), 'a node')
  await trial.aPod('second', { claims: ['mine'] })
  await trial.until(() => trial.message('second'), 'the reason')
  expect(await trial.message('second')).toBe(
    '0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode ' +
      'already in-use by another pod.',
  )
  const { attempts } = trial.scheduler
  await trial.aPod('bystander')
  await trial.until(() => trial.nodeOf('bystander'), 'a node')
  expect(trial.scheduler.attempts).toBe(attempts + 1)
  await trial.trial.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
  await trial.until(() => trial.nodeOf('second'), 'a node')
})
