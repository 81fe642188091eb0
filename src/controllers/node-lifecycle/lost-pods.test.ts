import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventKind } from '../../api/kinds/event/event.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { ApiError } from '../../api/status-error.ts'
import { createNodeLifecycleMetrics } from './index.ts'
import { aWorld, type World } from './node-lifecycle.fixture.ts'

let world: World

beforeEach(async () => {
  world = await aWorld()
})
afterEach(() => world.close())

const goes = async (name: string) => (await world.pod(name))?.metadata.deletionTimestamp !== undefined
const disruptionOf = async (name: string) =>
  (await world.pod(name))?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
const evictionMessages = () =>
  world.events.filter(({ reason }) => reason === 'TaintManagerEviction').map(({ message }) => message)

describe('eviction', () => {
  it('SYS-18 deletes pods of a lost node after 300 s or their tolerationSeconds', async () => {
    await world.anAgent('a')
    await world.anAgent('b')
    const bears = (tolerationSeconds?: number) => ({
      tolerations: [
        {
          key: 'node.kubernetes.io/unreachable',
          operator: 'Exists',
          effect: 'NoExecute',
          ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
        },
      ],
    })
    await world.aPod('usual', 'a')
    await world.aPod('hasty', 'a', bears(30))
    await world.aPod('faithful', 'a', bears())
    await world.aPod('elsewhere', 'b')
    world.start()
    await world.pass(10_000)
    world.alive.delete('a')
    await world.pass(40_000)
    expect(await world.taints('a')).not.toEqual([])
    await world.pass(29_000)
    expect(await goes('hasty')).toBe(false)
    await world.pass(2_000)
    expect(await goes('hasty')).toBe(true)
    expect(await disruptionOf('hasty')).toMatchObject({ status: 'True', reason: 'DeletionByTaintManager' })
    await world.pass(268_000)
    expect(await goes('usual')).toBe(false)
    await world.pass(2_000)
    expect(await goes('usual')).toBe(true)
    await world.pass(600_000)
    expect([await goes('faithful'), await goes('elsewhere')]).toEqual([false, false])
    expect(evictionMessages()).toEqual([
      'Marking for deletion Pod default/hasty',
      'Marking for deletion Pod default/usual',
    ])
    // No agent has shut them down: they still exist and hold their volumes.
    expect((await world.pod('usual'))?.metadata.deletionGracePeriodSeconds).toBe(30)
  })

  it('SYS-18 evicts no pod from a node that recovers in time', async () => {
    await world.anAgent('a')
    await world.anAgent('b')
    await world.aPod('p', 'a')
    world.start()
    await world.pass(10_000)
    world.alive.delete('a')
    await world.pass(300_000)
    world.alive.add('a')
    await world.report('a')
    await world.pass(600_000)
    expect(await goes('p')).toBe(false)
    expect(evictionMessages()).toEqual(['Cancelling deletion of Pod default/p'])
  })

  it('SYS-18 suspends evictions while no node is ready, and restarts tolerations afterwards', async () => {
    await world.anAgent('a')
    await world.anAgent('b')
    await world.aPod('p', 'a')
    world.start()
    await world.pass(10_000)
    world.alive.clear()
    await world.pass(1_000_000)
    expect(await goes('p')).toBe(false)
    world.alive.add('b')
    await world.report('b')
    await world.pass(290_000)
    expect(await goes('p')).toBe(false)
    await world.pass(20_000)
    expect(await goes('p')).toBe(true)
  })

  it('SYS-18 evicts pods that do not tolerate a user’s taint, including later pods', async () => {
    await world.aNode('a')
    await world.aPod('p', 'a')
    await world.aPod('bears', 'a', { tolerations: [{ key: 'team', operator: 'Equal', value: 'storage' }] })
    await world.aPod('bears-another', 'a', { tolerations: [{ key: 'team', operator: 'Equal', value: 'web' }] })
    world.start()
    await world.settle()
    await world.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoSchedule' }])
    await world.settle()
    expect(await goes('p')).toBe(false)
    await world.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoExecute' }])
    await world.settle()
    expect([await goes('p'), await goes('bears'), await goes('bears-another')]).toEqual([true, false, true])
    await world.aPod('late', 'a')
    await world.settle()
    expect(await goes('late')).toBe(true)
  })

  it('SYS-18 retries a failed eviction', async () => {
    await world.aNode('a')
    await world.aPod('p', 'a')
    let failures = 3
    world.start({
      intercept: (verb) => {
        if (verb === 'delete' && failures-- > 0) throw new ApiError(500, 'InternalError', 'not now')
      },
    })
    await world.setTaints('a', [{ key: 'team', effect: 'NoExecute' }])
    await world.pass(10_000)
    expect(await goes('p')).toBe(true)
  })
})

describe('pods without a node agent', () => {
  it('SYS-18 does not remove a pod that was recreated under the same name', async () => {
    const first = await world.aPod('p', 'nowhere')
    let isSwapped = false
    world.start({
      intercept: async (verb, kind) => {
        if (verb !== 'patch' || kind !== 'Pod' || isSwapped) return
        isSwapped = true // at the last moment
        await world.client.delete(podKind, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
        await world.aNode('b')
        await world.aPod('p', 'b')
      },
    })
    await world.pass(200_000)
    expect(isSwapped).toBe(true)
    const second = await world.pod('p')
    expect(second?.metadata.uid).not.toBe(first.metadata.uid)
    expect(second).toMatchObject({ status: { phase: 'Pending' } })
  })

  it('SYS-18 removes pods of a deleted node after 40 s', async () => {
    await world.anAgent('a')
    await world.aNode('b')
    await world.aPod('p', 'a')
    await world.aPod('held', 'a', {}, { finalizers: ['example.com/hold'] })
    await world.aPod('other', 'b')
    world.start()
    await world.settle()
    world.alive.delete('a')
    await world.client.delete(nodeKind, { name: 'a' })
    await world.pass(39_000)
    expect(await world.pod('p')).toBeDefined()
    await world.pass(2_000)
    expect(await world.pod('p')).toBeUndefined()
    expect((await world.pod('held'))?.status).toMatchObject({
      phase: 'Failed',
      conditions: [{ type: 'DisruptionTarget', reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' }],
    })
    const before = world.writes.length
    await world.pass(200_000)
    expect(world.writes.length).toBe(before) // a finalizer keeps it
    expect(await world.pod('other')).toMatchObject({ status: { phase: 'Pending' } })
  })

  it('SYS-18 keeps a pod that is older than its node', async () => {
    await world.aPod('p', 'late')
    world.start()
    await world.pass(30_000)
    await world.aNode('late')
    await world.pass(100_000)
    expect(await world.pod('p')).toMatchObject({ status: { phase: 'Pending' } })
  })

  it('SYS-18 confirms on the server that a node was deleted', async () => {
    await world.aPod('p', 'a')
    let asked = 0
    world.start({
      intercept: (verb, kind) => {
        if (verb !== 'get' || kind !== 'Node') return
        asked++
        throw new ApiError(503, 'ServiceUnavailable', 'away')
      },
    })
    await world.pass(100_000)
    expect(asked).toBeGreaterThan(0)
    expect(await world.pod('p')).toBeDefined()
  })

  it('SYS-18 removes pods being deleted on an out-of-service node at once, and evicts others', async () => {
    await world.anAgent('a')
    await world.anAgent('b')
    await world.aPod('going', 'a')
    await world.aPod('staying', 'a', { tolerations: [{ operator: 'Exists' }] })
    await world.aPod('evicted', 'a')
    world.start()
    await world.pass(10_000)
    await world.client.delete(podKind, { namespace: 'default', name: 'going' })
    world.alive.delete('a')
    await world.pass(60_000)
    expect(await goes('going')).toBe(true)
    await world.setTaints('a', [
      ...((await world.node('a')).spec?.taints ?? []),
      { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' },
    ])
    await world.settle()
    expect([await world.pod('going'), await world.pod('evicted')]).toEqual([undefined, undefined])
    expect(await goes('staying')).toBe(false)
  })

  it('SYS-18 leaves pods of a ready node to its agent, even if it is out of service', async () => {
    await world.anAgent('a')
    await world.aPod('p', 'a')
    world.start()
    await world.setTaints('a', [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }])
    await world.pass(10_000)
    expect(await goes('p')).toBe(true)
    await world.report('a', 'False')
    await world.settle()
    expect(await world.pod('p')).toBeUndefined()
  })

  it('SYS-7 removes terminated pods beyond the maximum: evicted first, then oldest', async () => {
    await world.aNode('a')
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      await world.aPod(name, 'a')
      await world.clock.advance(1_000)
    }
    for (const name of ['one', 'two', 'three']) await world.setPhase(name, 'Succeeded')
    world.start({ finishedPodsMax: 2 })
    await world.settle()
    expect(await world.pod('one')).toBeUndefined()
    await world.setPhase('four', 'Failed', 'Evicted')
    await world.settle()
    expect([await world.pod('two'), await world.pod('three')].every(Boolean)).toBe(true)
    expect(await world.pod('four')).toBeUndefined()
    await world.aPod('four', 'a')
    await world.setPhase('four', 'Failed')
    await world.settle()
    expect(await world.pod('two')).toBeUndefined()
    expect([await world.pod('three'), await world.pod('four'), await world.pod('five')].every(Boolean)).toBe(true)
  })
})

describe('events', () => {
  it('SYS-7 are all sent before the controllers stop', async () => {
    await world.anAgent('a')
    await world.aPod('p', 'a')
    const { stop } = world.start({ ownEvents: true })
    await world.settle()
    await world.setTaints('a', [{ key: 'team', effect: 'NoExecute' }])
    await world.settle()
    await stop()
    const { items } = await world.client.list(eventKind)
    const recorded = items.map(({ reason, source, involvedObject }) => [reason, source?.component, involvedObject.name])
    expect(recorded).toContainEqual(['RegisteredNode', 'node-controller', 'a'])
    expect(recorded).toContainEqual(['TaintManagerEviction', 'taint-eviction-controller', 'p'])
  })
})

describe('metrics', () => {
  it('SYS-11 count nodes by zone, lost nodes, evicted and removed pods', async () => {
    const registry = new Registry()
    await world.anAgent('a')
    await world.anAgent('b')
    await world.aPod('p', 'a')
    await world.aPod('orphan', 'nowhere')
    world.start({ metrics: createNodeLifecycleMetrics(registry) })
    await world.pass(10_000)
    world.alive.delete('a')
    await world.pass(345_000)
    const text = await registry.metrics()
    expect(text).toContain('node_collector_zone_size{zone=""} 2')
    expect(text).toContain('node_collector_zone_health{zone=""} 50')
    expect(text).toContain('node_collector_unhealthy_nodes_in_zone{zone=""} 1')
    expect(text).toContain('node_collector_evictions_total{zone=""} 1')
    expect(text).toContain('taint_eviction_controller_pod_deletions_total 1')
    expect(text).toContain('taint_eviction_controller_pod_deletion_duration_seconds_count 1')
    expect(text).toContain('pod_gc_collector_force_delete_pods_total{namespace="default",reason="orphaned"} 1')
  })
})
