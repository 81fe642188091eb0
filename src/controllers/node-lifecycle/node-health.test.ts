import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { ApiError } from '../../api/status-error.ts'
import { isReady } from '../attaching/node-state.ts'
import { createNodeLifecycleFixture, type NodeLifecycleFixture } from './node-lifecycle.fixture.ts'

const UNREACHABLE = ['node.kubernetes.io/unreachable:NoExecute', 'node.kubernetes.io/unreachable:NoSchedule']
const NOT_READY = ['node.kubernetes.io/not-ready:NoExecute', 'node.kubernetes.io/not-ready:NoSchedule']

let fixture: NodeLifecycleFixture

beforeEach(async () => {
  fixture = await createNodeLifecycleFixture()
})
afterEach(() => fixture.close())

describe('node health', () => {
  it('sets the conditions of a silent node to Unknown and taints it after 40 s, with one write each', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    fixture.start()
    await fixture.advance(60_000)
    expect(fixture.writes).toEqual([])
    fixture.aliveNodes.delete('a')
    await fixture.advance(39_000)
    expect((await fixture.ready('a'))?.status).toBe('True')
    await fixture.advance(2_000)
    expect(await fixture.ready('a')).toMatchObject({
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
      lastHeartbeatTime: '2026-01-01T00:00:00Z',
    })
    const { status, spec } = await fixture.node('a')
    expect(status?.conditions?.find(({ type }) => type === 'DiskPressure')?.status).toBe('Unknown')
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['DiskPressure', 'Ready', 'Unreachable'])
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
    expect(spec?.taints?.every(({ timeAdded }) => timeAdded !== undefined)).toBe(true)
    expect(isReady(await fixture.node('a'))).toBe(false) // the check of the attach-detach controllers
    await fixture.advance(600_000)
    expect(fixture.writes).toEqual(['patch Node a/status', 'patch Node a'])
    expect(await fixture.taints('b')).toEqual([])
    expect(fixture.eventReasons()).toEqual(['RegisteredNode', 'RegisteredNode', 'NodeNotReady'])
    expect(fixture.events.at(-1)).toMatchObject({ objectName: 'a', message: 'Node a status is now: NodeNotReady' })
  })

  it('removes its own taints when the agent reports again, and keeps others', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoSchedule' }])
    const { queueState } = fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    await fixture.advance(50_000)
    expect(await fixture.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule'])
    expect(queueState('a')).toMatchObject({ is: 'stuck', message: expect.stringContaining('stopped reporting') })
    fixture.aliveNodes.add('a')
    await fixture.advance(20_000)
    expect(await fixture.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule']) // the lease is renewed, but the status is not
    await fixture.report('a')
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual(['team:NoSchedule'])
    expect(fixture.eventReasons()).toEqual(['RegisteredNode', 'NodeNotReady', 'NodeReady'])
    fixture.aliveNodes.delete('a')
    await fixture.advance(41_000)
    expect(await fixture.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule']) // the node is still monitored
  })

  it('taints a node that is not ready, and changes the taint when it becomes unreachable', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    await fixture.settle()
    await fixture.report('a', 'False')
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual(NOT_READY)
    fixture.aliveNodes.delete('a')
    await fixture.advance(50_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
    expect(fixture.eventReasons()).toEqual(['RegisteredNode', 'NodeNotReady'])
    await fixture.report('a', 'False')
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual(NOT_READY)
    await fixture.report('a', 'True')
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual([])
    expect(fixture.eventReasons().at(-1)).toBe('NodeReady')
  })

  it('taints a node under pressure with NoSchedule', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    await fixture.setConditions('a', [fixture.condition('DiskPressure', 'True')])
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual(['node.kubernetes.io/disk-pressure:NoSchedule'])
    await fixture.setConditions('a', [fixture.condition('DiskPressure', 'False')])
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual([])
  })

  it('ignores nodes without an agent', async () => {
    await fixture.createNode('bare')
    await fixture.createNode('ready')
    await fixture.setConditions('ready', [{ type: 'Ready', status: 'True' }])
    await fixture.createNode('not-ready')
    await fixture.report('not-ready', 'False')
    fixture.start()
    await fixture.advance(200_000)
    await fixture.setConditions('ready', [{ type: 'Ready', status: 'False' }])
    await fixture.advance(200_000)
    expect(fixture.writes).toEqual([])
    expect(fixture.events).toEqual([])
  })

  it('monitors a node without a lease once its heartbeat has changed', async () => {
    await fixture.createNode('a')
    await fixture.report('a')
    fixture.start()
    await fixture.advance(100_000)
    expect(fixture.writes).toEqual([])
    await fixture.report('a')
    await fixture.advance(39_000)
    expect(fixture.writes).toEqual([])
    await fixture.advance(2_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('gives a node with a lease but without a status a grace period of 60 s', async () => {
    await fixture.renew('a')
    await fixture.createNode('a')
    fixture.start()
    await fixture.advance(59_000)
    expect(fixture.writes).toEqual([])
    await fixture.advance(2_000)
    expect(await fixture.ready('a')).toMatchObject({ status: 'Unknown', reason: 'NodeStatusNeverUpdated' })
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('still monitors a node whose lease was deleted', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    await fixture.client.delete(leaseKind, { namespace: 'kube-node-lease', name: 'a' })
    await fixture.advance(50_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('does not depend on the clocks of other processes', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    const ref = { namespace: 'kube-node-lease', name: 'a' }
    fixture.aliveNodes.delete('a')
    for (let hour = 23; hour > 0; hour--) {
      const lease = await fixture.client.get(leaseKind, ref) // each renewal has an earlier time
      const renewTime = `2001-01-01T${String(hour).padStart(2, '0')}:00:00.000000Z`
      await fixture.client.update(leaseKind, { ...lease, spec: { ...lease.spec, renewTime } })
      await fixture.advance(30_000)
    }
    expect(fixture.writes).toEqual([])
    const lease = await fixture.client.get(leaseKind, ref) // the last renewal has a time in the far future
    await fixture.client.update(leaseKind, {
      ...lease,
      spec: { ...lease.spec, renewTime: '2099-01-01T00:00:00.000000Z' },
    })
    await fixture.advance(50_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('ignores changes to the lease and the node that are not reports', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    for (let turn = 0; turn < 5; turn++) {
      const body = { metadata: { labels: { turn: String(turn) } } }
      await fixture.client.patch(leaseKind, { namespace: 'kube-node-lease', name: 'a' }, { type: 'merge', body })
      await fixture.client.patch(nodeKind, { name: 'a' }, { type: 'merge', body })
      await fixture.advance(10_000)
    }
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('restarts the grace period after the server was unavailable', async () => {
    await fixture.createNodeWithAgent('a')
    let isUnavailable = false
    fixture.start({
      intercept: () => {
        if (isUnavailable) throw new ApiError(503, 'ServiceUnavailable', 'injected')
      },
    })
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    isUnavailable = true
    await fixture.advance(70_000)
    isUnavailable = false
    await fixture.advance(9_000) // silent for 79 s, but the server was unavailable when the grace period ended
    expect(await fixture.taints('a')).toEqual([])
    await fixture.advance(40_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('reconciles again after a conflict', async () => {
    await fixture.createNodeWithAgent('a')
    let conflicts = 2
    fixture.start({
      intercept: (verb) => {
        if (verb === 'patch' && conflicts-- > 0) throw new ApiError(409, 'Conflict', 'changed')
      },
    })
    fixture.aliveNodes.delete('a')
    await fixture.advance(60_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
    expect((await fixture.ready('a'))?.status).toBe('Unknown')
  })

  it('completes the writes of a crashed process', async () => {
    await fixture.createNodeWithAgent('a')
    let isStatusWritten = false
    const firstProcess = fixture.start({
      intercept: (verb, kind) => {
        if (verb !== 'patch' || kind !== 'Node') return
        if (isStatusWritten) throw new ApiError(503, 'ServiceUnavailable', 'injected')
        isStatusWritten = true // the status is written, the taints are not
      },
    })
    fixture.aliveNodes.delete('a')
    await fixture.advance(41_000)
    await firstProcess.stop()
    expect((await fixture.ready('a'))?.status).toBe('Unknown')
    expect(await fixture.taints('a')).toEqual([])
    fixture.start()
    await fixture.settle()
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('restarts the grace period of a recreated node', async () => {
    await fixture.createNodeWithAgent('a')
    fixture.start()
    await fixture.advance(30_000)
    fixture.aliveNodes.delete('a')
    await fixture.client.delete(nodeKind, { name: 'a' })
    await fixture.settle()
    expect(fixture.events.at(-1)).toMatchObject({
      reason: 'RemovingNode',
      message: 'Node a event: Removing Node a from Controller',
    })
    await fixture.advance(30_000)
    await fixture.createNode('a')
    await fixture.report('a')
    await fixture.advance(39_000)
    expect(fixture.writes).toEqual([])
    await fixture.advance(2_000)
    expect(await fixture.taints('a')).toEqual(UNREACHABLE)
  })

  it('does not change a node whose lease is renewed or status is reported in time, even with stale caches', async () => {
    const step = fc.record({
      waitMs: fc.integer({ min: 0, max: 39_990 }),
      action: fc.constantFrom('renew', 'report', 'both'),
      noise: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), fc.boolean(), async (steps, hasStaleCaches) => {
        const ownFixture = await createNodeLifecycleFixture()
        try {
          await ownFixture.createNodeWithAgent('a')
          ownFixture.start({ hasStaleCaches })
          await ownFixture.settle()
          for (const [index, { waitMs, action, noise }] of steps.entries()) {
            await ownFixture.clock.advance(waitMs)
            if (action !== 'report') await ownFixture.renew('a')
            if (action !== 'renew') await ownFixture.setConditions('a', [heartbeat(index)])
            if (noise) await ownFixture.setTaints('a', [{ key: 'noise', value: String(index), effect: 'NoSchedule' }])
            await ownFixture.settle()
          }
          await ownFixture.settle()
          return ownFixture.writes.length === 0 && (await ownFixture.ready('a'))?.status === 'True'
        } finally {
          await ownFixture.close()
        }
      }),
      { numRuns: 40 },
    )
  })

  it('sets a node that stops reporting at any time to Unknown after 40 s', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 39_990 }), { maxLength: 8 }), async (gapsMs) => {
        const ownFixture = await createNodeLifecycleFixture()
        try {
          await ownFixture.createNodeWithAgent('a')
          ownFixture.start()
          await ownFixture.settle()
          for (const gapMs of gapsMs) {
            await ownFixture.clock.advance(gapMs)
            await ownFixture.renew('a')
            await ownFixture.settle()
          }
          await ownFixture.clock.advance(39_999)
          await ownFixture.settle()
          const statusBefore = (await ownFixture.ready('a'))?.status
          await ownFixture.clock.advance(1)
          await ownFixture.settle()
          return statusBefore === 'True' && (await ownFixture.ready('a'))?.status === 'Unknown'
        } finally {
          await ownFixture.close()
        }
      }),
      { numRuns: 25 },
    )
  }, 60_000)
})

/** Returns a Ready condition with a different heartbeat time for each index, unrelated to the fixture's clock. */
const heartbeat = (index: number) => ({
  type: 'Ready',
  status: 'True',
  lastHeartbeatTime: new Date(Date.UTC(2030, 0, 1) + index * 1_000).toISOString().replace('.000', ''),
})
