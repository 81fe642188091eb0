import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { ApiError } from '../../api/status-error.ts'
import { isReady } from '../attaching/node-state.ts'
import { aWorld, type World } from './node-lifecycle.fixture.ts'

const UNREACHABLE = ['node.kubernetes.io/unreachable:NoExecute', 'node.kubernetes.io/unreachable:NoSchedule']
const NOT_READY = ['node.kubernetes.io/not-ready:NoExecute', 'node.kubernetes.io/not-ready:NoSchedule']

let world: World

beforeEach(async () => {
  world = await aWorld()
})
afterEach(() => world.close())

describe('node health', () => {
  it('SYS-18 sets a node to Unknown and taints it after 40 s, with one write each', async () => {
    await world.anAgent('a')
    await world.anAgent('b')
    world.start()
    await world.pass(60_000)
    expect(world.writes).toEqual([])
    world.alive.delete('a')
    await world.pass(39_000)
    expect((await world.ready('a'))?.status).toBe('True')
    await world.pass(2_000)
    expect(await world.ready('a')).toMatchObject({
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
      lastHeartbeatTime: '2026-01-01T00:00:00Z',
    })
    const { status, spec } = await world.node('a')
    expect(status?.conditions?.find(({ type }) => type === 'DiskPressure')?.status).toBe('Unknown')
    expect(status?.conditions).toHaveLength(2)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
    expect(spec?.taints?.every(({ timeAdded }) => timeAdded !== undefined)).toBe(true)
    expect(isReady(await world.node('a'))).toBe(false) // as attaching reads it
    await world.pass(600_000)
    expect(world.writes).toEqual(['patch Node a/status', 'patch Node a'])
    expect(await world.taints('b')).toEqual([])
    expect(world.reasons()).toEqual(['RegisteredNode', 'RegisteredNode', 'NodeNotReady'])
    expect(world.events.at(-1)).toMatchObject({ about: 'a', message: 'Node a status is now: NodeNotReady' })
  })

  it('SYS-18 removes its own taints when the agent reports again, and keeps others', async () => {
    await world.anAgent('a')
    await world.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoSchedule' }])
    const { standing } = world.start()
    await world.pass(10_000)
    world.alive.delete('a')
    await world.pass(50_000)
    expect(await world.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule'])
    expect(standing('a')).toMatchObject({ is: 'stuck', because: expect.stringContaining('stopped reporting') })
    world.alive.add('a')
    await world.pass(20_000)
    expect(await world.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule']) // alive, but has not said how it is
    await world.report('a')
    await world.settle()
    expect(await world.taints('a')).toEqual(['team:NoSchedule'])
    expect(world.reasons()).toEqual(['RegisteredNode', 'NodeNotReady', 'NodeReady'])
    world.alive.delete('a')
    await world.pass(41_000)
    expect(await world.taints('a')).toEqual([...UNREACHABLE, 'team:NoSchedule']) // and it is watched as before
  })

  it('SYS-7 taints a node that is not ready, and changes the taint when it becomes unreachable', async () => {
    await world.anAgent('a')
    world.start()
    await world.settle()
    await world.report('a', 'False')
    await world.settle()
    expect(await world.taints('a')).toEqual(NOT_READY)
    world.alive.delete('a')
    await world.pass(50_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
    expect(world.reasons()).toEqual(['RegisteredNode', 'NodeNotReady'])
    await world.report('a', 'False')
    await world.settle()
    expect(await world.taints('a')).toEqual(NOT_READY)
    await world.report('a', 'True')
    await world.settle()
    expect(await world.taints('a')).toEqual([])
    expect(world.reasons().at(-1)).toBe('NodeReady')
  })

  it('SYS-7 taints a node under pressure with NoSchedule', async () => {
    await world.anAgent('a')
    world.start()
    await world.setConditions('a', [world.condition('DiskPressure', 'True')])
    await world.settle()
    expect(await world.taints('a')).toEqual(['node.kubernetes.io/disk-pressure:NoSchedule'])
    await world.setConditions('a', [world.condition('DiskPressure', 'False')])
    await world.settle()
    expect(await world.taints('a')).toEqual([])
  })

  it('SYS-7 ignores nodes without an agent', async () => {
    await world.aNode('bare')
    await world.aNode('ready')
    await world.setConditions('ready', [{ type: 'Ready', status: 'True' }])
    await world.aNode('not-ready')
    await world.report('not-ready', 'False')
    world.start()
    await world.pass(200_000)
    await world.setConditions('ready', [{ type: 'Ready', status: 'False' }])
    await world.pass(200_000)
    expect(world.writes).toEqual([])
    expect(world.events).toEqual([])
  })

  it('SYS-18 monitors a node without a lease once its heartbeat has changed', async () => {
    await world.aNode('a')
    await world.report('a')
    world.start()
    await world.pass(100_000)
    expect(world.writes).toEqual([])
    await world.report('a')
    await world.pass(39_000)
    expect(world.writes).toEqual([])
    await world.pass(2_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 gives a node with a lease but without a status 60 s', async () => {
    await world.renew('a')
    await world.aNode('a')
    world.start()
    await world.pass(59_000)
    expect(world.writes).toEqual([])
    await world.pass(2_000)
    expect(await world.ready('a')).toMatchObject({ status: 'Unknown', reason: 'NodeStatusNeverUpdated' })
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 still monitors a node whose lease was deleted', async () => {
    await world.anAgent('a')
    world.start()
    await world.pass(10_000)
    world.alive.delete('a')
    await world.client.delete(leaseKind, { namespace: 'kube-node-lease', name: 'a' })
    await world.pass(50_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 does not depend on the clocks of other machines', async () => {
    await world.anAgent('a')
    world.start()
    const ref = { namespace: 'kube-node-lease', name: 'a' }
    world.alive.delete('a')
    for (let hour = 23; hour > 0; hour--) {
      const found = await world.client.get(leaseKind, ref) // renewed, with a time that runs backwards
      const renewTime = `2001-01-01T${String(hour).padStart(2, '0')}:00:00.000000Z`
      await world.client.update(leaseKind, { ...found, spec: { ...found.spec, renewTime } })
      await world.pass(30_000)
    }
    expect(world.writes).toEqual([])
    const found = await world.client.get(leaseKind, ref) // in the far future, and never again
    await world.client.update(leaseKind, {
      ...found,
      spec: { ...found.spec, renewTime: '2099-01-01T00:00:00.000000Z' },
    })
    await world.pass(50_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 counts only renewals of the lease', async () => {
    await world.anAgent('a')
    world.start()
    await world.pass(10_000)
    world.alive.delete('a')
    for (let turn = 0; turn < 5; turn++) {
      const body = { metadata: { labels: { turn: String(turn) } } }
      await world.client.patch(leaseKind, { namespace: 'kube-node-lease', name: 'a' }, { type: 'merge', body })
      await world.client.patch(nodeKind, { name: 'a' }, { type: 'merge', body })
      await world.pass(10_000)
    }
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 restarts the grace period after the server was unavailable', async () => {
    await world.anAgent('a')
    let isAway = false
    world.start({
      intercept: () => {
        if (isAway) throw new ApiError(503, 'ServiceUnavailable', 'away')
      },
    })
    await world.pass(10_000)
    world.alive.delete('a')
    isAway = true
    await world.pass(70_000)
    isAway = false
    await world.pass(9_000) // silent for 79 s, of which 40 s ended in darkness
    expect(await world.taints('a')).toEqual([])
    await world.pass(40_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 plans again after a conflict', async () => {
    await world.anAgent('a')
    let conflicts = 2
    world.start({
      intercept: (verb) => {
        if (verb === 'patch' && conflicts-- > 0) throw new ApiError(409, 'Conflict', 'changed')
      },
    })
    world.alive.delete('a')
    await world.pass(60_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
    expect((await world.ready('a'))?.status).toBe('Unknown')
  })

  it('SYS-18 finishes the writes of a crashed process', async () => {
    await world.anAgent('a')
    let mayTaint = false
    const first = world.start({
      intercept: (verb, kind) => {
        if (verb !== 'patch' || kind !== 'Node') return
        if (mayTaint) throw new ApiError(503, 'ServiceUnavailable', 'died here')
        mayTaint = true // the status is written, the taints are not
      },
    })
    world.alive.delete('a')
    await world.pass(41_000)
    await first.stop()
    expect((await world.ready('a'))?.status).toBe('Unknown')
    expect(await world.taints('a')).toEqual([])
    world.start()
    await world.settle()
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-7 forgets a deleted node and monitors a recreated one from the start', async () => {
    await world.anAgent('a')
    world.start()
    await world.pass(30_000)
    world.alive.delete('a')
    await world.client.delete(nodeKind, { name: 'a' })
    await world.settle()
    expect(world.events.at(-1)).toMatchObject({
      reason: 'RemovingNode',
      message: 'Node a event: Removing Node a from Controller',
    })
    await world.pass(30_000)
    await world.aNode('a')
    await world.report('a')
    await world.pass(39_000)
    expect(world.writes).toEqual([])
    await world.pass(2_000)
    expect(await world.taints('a')).toEqual(UNREACHABLE)
  })

  it('SYS-18 never changes a node whose lease is renewed in time, even with stale caches', async () => {
    const step = fc.record({
      waitMs: fc.integer({ min: 0, max: 39_990 }),
      does: fc.constantFrom('renew', 'report', 'both'),
      noise: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), fc.boolean(), async (steps, hasStaleCaches) => {
        const quiet = await aWorld()
        try {
          await quiet.anAgent('a')
          quiet.start({ hasStaleCaches })
          await quiet.settle()
          for (const [index, { waitMs, does, noise }] of steps.entries()) {
            await quiet.clock.advance(waitMs)
            if (does !== 'report') await quiet.renew('a')
            if (does !== 'renew') await quiet.setConditions('a', [heartbeat(index)])
            if (noise) await quiet.setTaints('a', [{ key: 'noise', value: String(index), effect: 'NoSchedule' }])
            await quiet.settle()
          }
          await quiet.settle()
          return quiet.writes.length === 0 && (await quiet.ready('a'))?.status === 'True'
        } finally {
          await quiet.close()
        }
      }),
      { numRuns: 40 },
    )
  }, 60_000)

  it('SYS-18 a node that stops is lost after 40 s, at any time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 39_990 }), { maxLength: 8 }), async (gaps) => {
        const quiet = await aWorld()
        try {
          await quiet.anAgent('a')
          quiet.start()
          await quiet.settle()
          for (const gapMs of gaps) {
            await quiet.clock.advance(gapMs)
            await quiet.renew('a')
            await quiet.settle()
          }
          await quiet.clock.advance(39_999)
          await quiet.settle()
          const before = (await quiet.ready('a'))?.status
          await quiet.clock.advance(1)
          await quiet.settle()
          return before === 'True' && (await quiet.ready('a'))?.status === 'Unknown'
        } finally {
          await quiet.close()
        }
      }),
      { numRuns: 25 },
    )
  }, 60_000)
})

/** Timestamps that differ even within one second. */
const heartbeat = (index: number) => ({
  type: 'Ready',
  status: 'True',
  lastHeartbeatTime: new Date(Date.UTC(2030, 0, 1) + index * 1_000).toISOString().replace('.000', ''),
})
