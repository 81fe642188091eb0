import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture()
})
afterEach(() => fixture.stop())

describe('VolumeRestrictions', () => {
  it('CAP-12 rejects a second pod with a ReadWriteOncePod claim until the first pod is deleted', async () => {
    await fixture.createClass('local')
    for (const name of ['n1', 'n2']) {
      await fixture.createNode(name)
      fixture.storage.freeBytes.set(name, gi(10))
    }
    await fixture.createClaim('data', { spec: { accessModes: ['ReadWriteOncePod'] } })
    await fixture.createPod('first', { claims: ['data'] })
    await fixture.waitUntil(() => fixture.nodeOf('first'), 'the pod to be bound')
    await fixture.createPod('second', { claims: ['data'] })
    await fixture.waitUntil(() => fixture.message('second'), 'the message to be reported')
    expect(await fixture.message('second')).toBe(
      '0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode ' +
        'already in-use by another pod. ' +
        'preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.',
    )
    const { attempts } = fixture.scheduler
    await fixture.createPod('unrelated')
    await fixture.waitUntil(() => fixture.nodeOf('unrelated'), 'the pod to be bound')
    expect(fixture.scheduler.attempts).toBe(attempts + 1)
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await fixture.waitUntil(() => fixture.nodeOf('second'), 'the pod to be bound')
  })
})
