// Tests the eviction and removal of pods, the events and the metrics of the node lifecycle controllers. node-health.test.ts
// tests the conditions and taints of nodes.
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventKind } from '../../api/kinds/event/event.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { ApiError } from '../../api/status-error.ts'
import { createNodeLifecycleMetrics } from './index.ts'
import { createNodeLifecycleFixture, type NodeLifecycleFixture } from './node-lifecycle.fixture.ts'

let fixture: NodeLifecycleFixture

beforeEach(async () => {
  fixture = await createNodeLifecycleFixture()
})
afterEach(() => fixture.close())

const isBeingDeleted = async (name: string) => (await fixture.pod(name))?.metadata.deletionTimestamp !== undefined
const readDisruption = async (name: string) =>
  (await fixture.pod(name))?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
const evictionMessages = () =>
  fixture.events.filter(({ reason }) => reason === 'TaintManagerEviction').map(({ message }) => message)

describe('eviction', () => {
  it('deletes pods of an unreachable node after 300 s or their tolerationSeconds', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    const tolerationOf = (tolerationSeconds?: number) => ({
      tolerations: [
        {
          key: 'node.kubernetes.io/unreachable',
          operator: 'Exists',
          effect: 'NoExecute',
          ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
        },
      ],
    })
    await fixture.createPod('default-toleration', 'a')
    await fixture.createPod('short-toleration', 'a', tolerationOf(30))
    await fixture.createPod('unlimited-toleration', 'a', tolerationOf())
    await fixture.createPod('other-node', 'b')
    fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    await fixture.advance(40_000)
    expect(await fixture.taints('a')).not.toEqual([])
    await fixture.advance(29_000)
    expect(await isBeingDeleted('short-toleration')).toBe(false)
    await fixture.advance(2_000)
    expect(await isBeingDeleted('short-toleration')).toBe(true)
    expect(await readDisruption('short-toleration')).toMatchObject({ status: 'True', reason: 'DeletionByTaintManager' })
    await fixture.advance(268_000)
    expect(await isBeingDeleted('default-toleration')).toBe(false)
    await fixture.advance(2_000)
    expect(await isBeingDeleted('default-toleration')).toBe(true)
    await fixture.advance(600_000)
    expect([await isBeingDeleted('unlimited-toleration'), await isBeingDeleted('other-node')]).toEqual([false, false])
    expect(evictionMessages()).toEqual([
      'Marking for deletion Pod default/short-toleration',
      'Marking for deletion Pod default/default-toleration',
    ])
    // The pods still exist and use their volumes, because no agent has shut them down.
    expect((await fixture.pod('default-toleration'))?.metadata.deletionGracePeriodSeconds).toBe(30)
  })

  it('evicts no pod from a node that recovers in time', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    await fixture.createPod('p', 'a')
    fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    await fixture.advance(300_000)
    fixture.aliveNodes.add('a')
    await fixture.report('a')
    await fixture.advance(600_000)
    expect(await isBeingDeleted('p')).toBe(false)
    expect(evictionMessages()).toEqual(['Cancelling deletion of Pod default/p'])
  })

  it('suspends evictions while no node is ready, and restarts tolerations afterwards', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    await fixture.createPod('p', 'a')
    fixture.start()
    await fixture.advance(10_000)
    fixture.aliveNodes.clear()
    await fixture.advance(1_000_000)
    expect(await isBeingDeleted('p')).toBe(false)
    fixture.aliveNodes.add('b')
    await fixture.report('b')
    await fixture.advance(290_000)
    expect(await isBeingDeleted('p')).toBe(false)
    await fixture.advance(20_000)
    expect(await isBeingDeleted('p')).toBe(true)
  })

  it("evicts pods that do not tolerate a user's taint, including later pods", async () => {
    await fixture.createNode('a')
    await fixture.createPod('p', 'a')
    await fixture.createPod('tolerates', 'a', { tolerations: [{ key: 'team', operator: 'Equal', value: 'storage' }] })
    await fixture.createPod('tolerates-other', 'a', { tolerations: [{ key: 'team', operator: 'Equal', value: 'web' }] })
    fixture.start()
    await fixture.settle()
    await fixture.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoSchedule' }])
    await fixture.settle()
    expect(await isBeingDeleted('p')).toBe(false)
    await fixture.setTaints('a', [{ key: 'team', value: 'storage', effect: 'NoExecute' }])
    await fixture.settle()
    expect([
      await isBeingDeleted('p'),
      await isBeingDeleted('tolerates'),
      await isBeingDeleted('tolerates-other'),
    ]).toEqual([true, false, true])
    await fixture.createPod('late', 'a')
    await fixture.settle()
    expect(await isBeingDeleted('late')).toBe(true)
  })

  it('retries a failed eviction', async () => {
    await fixture.createNode('a')
    await fixture.createPod('p', 'a')
    let failures = 3
    fixture.start({
      intercept: (verb) => {
        if (verb === 'delete' && failures-- > 0) throw new ApiError(500, 'InternalError', 'injected')
      },
    })
    await fixture.setTaints('a', [{ key: 'team', effect: 'NoExecute' }])
    await fixture.advance(10_000)
    expect(await isBeingDeleted('p')).toBe(true)
  })
})

describe('pods without a node agent', () => {
  it('does not remove a pod that was recreated under the same name', async () => {
    const oldPod = await fixture.createPod('p', 'missing-node')
    let isRecreated = false
    fixture.start({
      intercept: async (verb, kind) => {
        if (verb !== 'patch' || kind !== 'Pod' || isRecreated) return
        isRecreated = true // just before the pod is patched
        await fixture.client.delete(podKind, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
        await fixture.createNode('b')
        await fixture.createPod('p', 'b')
      },
    })
    await fixture.advance(200_000)
    expect(isRecreated).toBe(true)
    const newPod = await fixture.pod('p')
    expect(newPod?.metadata.uid).not.toBe(oldPod.metadata.uid)
    expect(newPod).toMatchObject({ status: { phase: 'Pending' } })
  })

  it('removes pods of a deleted node after 40 s', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNode('b')
    await fixture.createPod('p', 'a')
    await fixture.createPod('held', 'a', {}, { finalizers: ['example.com/hold'] })
    await fixture.createPod('other', 'b')
    fixture.start()
    await fixture.settle()
    fixture.aliveNodes.delete('a')
    await fixture.client.delete(nodeKind, { name: 'a' })
    await fixture.advance(39_000)
    expect(await fixture.pod('p')).toBeDefined()
    await fixture.advance(2_000)
    expect(await fixture.pod('p')).toBeUndefined()
    expect((await fixture.pod('held'))?.status).toMatchObject({
      phase: 'Failed',
      conditions: [{ type: 'DisruptionTarget', reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' }],
    })
    const writesBefore = fixture.writes.length
    await fixture.advance(200_000)
    expect(fixture.writes.length).toBe(writesBefore) // a finalizer keeps the pod held
    expect(await fixture.pod('other')).toMatchObject({ status: { phase: 'Pending' } })
  })

  it('keeps a pod that is older than its node', async () => {
    await fixture.createPod('p', 'late')
    fixture.start()
    await fixture.advance(30_000)
    await fixture.createNode('late')
    await fixture.advance(100_000)
    expect(await fixture.pod('p')).toMatchObject({ status: { phase: 'Pending' } })
  })

  it("keeps a missing node's pods while the server does not confirm that it is missing", async () => {
    await fixture.createPod('p', 'a')
    let serverReads = 0
    fixture.start({
      intercept: (verb, kind) => {
        if (verb !== 'get' || kind !== 'Node') return
        serverReads++
        throw new ApiError(503, 'ServiceUnavailable', 'injected')
      },
    })
    await fixture.advance(100_000)
    expect(serverReads).toBeGreaterThan(0)
    expect(await fixture.pod('p')).toBeDefined()
  })

  it('removes pods being deleted on an out-of-service node immediately, and evicts others', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    await fixture.createPod('terminating', 'a')
    await fixture.createPod('tolerating', 'a', { tolerations: [{ operator: 'Exists' }] })
    await fixture.createPod('evicted', 'a')
    fixture.start()
    await fixture.advance(10_000)
    await fixture.client.delete(podKind, { namespace: 'default', name: 'terminating' })
    fixture.aliveNodes.delete('a')
    await fixture.advance(60_000)
    expect(await isBeingDeleted('terminating')).toBe(true)
    await fixture.setTaints('a', [
      ...((await fixture.node('a')).spec?.taints ?? []),
      { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' },
    ])
    await fixture.settle()
    expect([await fixture.pod('terminating'), await fixture.pod('evicted')]).toEqual([undefined, undefined])
    expect(await isBeingDeleted('tolerating')).toBe(false)
  })

  it('leaves pods of an out-of-service node to its agent while the node is ready', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createPod('p', 'a')
    fixture.start()
    await fixture.setTaints('a', [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }])
    await fixture.advance(10_000)
    expect(await isBeingDeleted('p')).toBe(true)
    await fixture.report('a', 'False')
    await fixture.settle()
    expect(await fixture.pod('p')).toBeUndefined()
  })

  it('removes terminated pods beyond the maximum: evicted first, then oldest', async () => {
    await fixture.createNode('a')
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      await fixture.createPod(name, 'a')
      await fixture.clock.advance(1_000)
    }
    for (const name of ['one', 'two', 'three']) await fixture.setPhase(name, 'Succeeded')
    fixture.start({ terminatedPodsMax: 2 })
    await fixture.settle()
    expect(await fixture.pod('one')).toBeUndefined()
    await fixture.setPhase('four', 'Failed', 'Evicted')
    await fixture.settle()
    expect([await fixture.pod('two'), await fixture.pod('three')].every(Boolean)).toBe(true)
    expect(await fixture.pod('four')).toBeUndefined()
    await fixture.createPod('four', 'a')
    await fixture.setPhase('four', 'Failed')
    await fixture.settle()
    expect(await fixture.pod('two')).toBeUndefined()
    expect([await fixture.pod('three'), await fixture.pod('four'), await fixture.pod('five')].every(Boolean)).toBe(true)
  })
})

describe('node lifecycle events', () => {
  it('are sent before the controllers stop', async () => {
    await fixture.createNodeWithAgent('a')
    await fixture.createPod('p', 'a')
    const { stop } = fixture.start({ shouldStoreEvents: true })
    await fixture.settle()
    await fixture.setTaints('a', [{ key: 'team', effect: 'NoExecute' }])
    await fixture.settle()
    await stop()
    const { items } = await fixture.client.list(eventKind)
    const events = items.map(({ reason, source, involvedObject }) => [reason, source?.component, involvedObject.name])
    expect(events).toContainEqual(['RegisteredNode', 'node-controller', 'a'])
    expect(events).toContainEqual(['TaintManagerEviction', 'taint-eviction-controller', 'p'])
  })
})

describe('node lifecycle metrics', () => {
  it('SYS-11 count nodes by zone, lost nodes, evicted pods and removed pods', async () => {
    const registry = new Registry()
    await fixture.createNodeWithAgent('a')
    await fixture.createNodeWithAgent('b')
    await fixture.createPod('p', 'a')
    await fixture.createPod('orphan', 'missing-node')
    fixture.start({ metrics: createNodeLifecycleMetrics(registry) })
    await fixture.advance(10_000)
    fixture.aliveNodes.delete('a')
    await fixture.advance(345_000)
    const metrics = await registry.metrics()
    expect(metrics).toContain('node_collector_zone_size{zone=""} 2')
    expect(metrics).toContain('stowage_lost_nodes{phase="Unreachable"} 1')
    expect(metrics).toContain('node_collector_zone_health{zone=""} 50')
    expect(metrics).toContain('node_collector_unhealthy_nodes_in_zone{zone=""} 1')
    expect(metrics).toContain('node_collector_evictions_total{zone=""} 1')
    expect(metrics).toContain('taint_eviction_controller_pod_deletions_total 1')
    expect(metrics).toContain('taint_eviction_controller_pod_deletion_duration_seconds_count 1')
    expect(metrics).toContain('pod_gc_collector_force_delete_pods_total{namespace="default",reason="orphaned"} 1')
  })
})
