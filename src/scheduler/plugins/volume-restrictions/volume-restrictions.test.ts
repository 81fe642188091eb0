import { afterEach, beforeEach, expect, it } from 'vitest'
import { gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture()
})
afterEach(() => fixture.stop())

it('CAP-12 keeps a second pod off a ReadWriteOncePod claim until the first pod is deleted', async () => {
  await fixture.createClass('local')
  for (const name of ['n1', 'n2']) {
    await fixture.createNode(name)
    fixture.storage.free.set(name, gi(10))
  }
  await fixture.createClaim('mine', { spec: { accessModes: ['ReadWriteOncePod'] } })
  await fixture.createPod('first', { claims: ['mine'] })
  await fixture.until(() => fixture.nodeOf('first'), 'a node')
  await fixture.createPod('second', { claims: ['mine'] })
  await fixture.until(() => fixture.message('second'), 'the reason')
  expect(await fixture.message('second')).toBe(
    '0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode ' +
      'already in-use by another pod.',
  )
  const { attempts } = fixture.scheduler
  await fixture.createPod('bystander')
  await fixture.until(() => fixture.nodeOf('bystander'), 'a node')
  expect(fixture.scheduler.attempts).toBe(attempts + 1)
  await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
  await fixture.until(() => fixture.nodeOf('second'), 'a node')
})
