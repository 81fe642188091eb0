import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestsOf } from '../../cluster/amounts.ts'
import { podInfo } from '../../cluster/pod-info.ts'
import { aNode, aPod, rejections, requesting, scores } from '../plugins.fixture.ts'
import { nodeResources, TOO_MANY_PODS } from './node-resources.ts'

describe('NodeResourcesFit', () => {
  const sizedNode = (allocatable: Record<string, string> = { cpu: '4', memory: '8Gi', pods: '3' }) =>
    aNode({ status: { allocatable } })

  it('CAP-12 names every resource that is insufficient', () => {
    const node = sizedNode()
    node.addPod(podInfo(requesting({ cpu: '3' }, 'there')))
    expect(
      rejections(nodeResources, requesting({ cpu: '1500m', memory: '9Gi', 'example.com/gpu': '1' }), node),
    ).toEqual(['Insufficient cpu', 'Insufficient memory', 'Insufficient example.com/gpu'])
    expect(rejections(nodeResources, requesting({ cpu: '1' }), node)).toEqual([])
  })

  it('CAP-12 limits the number of pods', () => {
    const node = sizedNode({ pods: '1' })
    node.addPod(podInfo(aPod({}, 'there')))
    expect(rejections(nodeResources, aPod(), node)).toEqual([TOO_MANY_PODS.message])
  })

  it('CAP-12 accepts a node that states no resources', () => {
    expect(rejections(nodeResources, requesting({ cpu: '100' }), aNode())).toEqual([])
  })

  it('CAP-12 counts the peak of containers and init containers, plus overhead', () => {
    const cpu = (spec: object) => requestsOf(aPod(spec)).get('cpu')
    const one = (amount: string, restartPolicy?: string) => ({
      name: 'c',
      resources: { requests: { cpu: amount } },
      ...(restartPolicy ? { restartPolicy } : {}),
    })
    expect(cpu({ containers: [one('1'), one('500m')] })).toBe(1_500)
    expect(cpu({ containers: [one('1')], initContainers: [one('3'), one('2')] })).toBe(3_000)
    expect(cpu({ containers: [one('1')], initContainers: [one('1', 'Always'), one('3')] })).toBe(4_000)
    expect(cpu({ containers: [one('2')], initContainers: [one('1', 'Always')] })).toBe(3_000)
    expect(cpu({ containers: [one('1')], overhead: { cpu: '250m' } })).toBe(1_250)
    expect(cpu({ containers: [one('1'), one('1')], resources: { requests: { cpu: '1' } } })).toBe(1_000)
    expect(
      requestsOf(aPod({ containers: [{ name: 'c', resources: { requests: { memory: '1.5' } } }] })).get('memory'),
    ).toBe(2)
  })

  it('CAP-12 scores the emptier node higher, also for pods without requests', () => {
    const [busy, idle] = [sizedNode(), sizedNode()]
    busy.addPod(podInfo(aPod({}, 'there')))
    const [first = 0, second = 0] = scores(nodeResources, aPod(), [busy, idle]) ?? []
    expect(second).toBeGreaterThan(first)
  })

  it('CAP-12 keeps the sums of a node correct as pods come and go', () => {
    const pod = fc.record({ id: fc.nat(5), cpu: fc.nat(4_000), leaves: fc.boolean() })
    fc.assert(
      fc.property(fc.array(pod, { maxLength: 60, size: 'max' }), (changes) => {
        const node = sizedNode()
        const there = new Map<number, number>()
        for (const { id, cpu, leaves } of changes) {
          if (leaves) {
            node.removePod(`default/p${id}`)
            there.delete(id)
          } else {
            node.addPod(podInfo(requesting({ cpu: `${cpu}m` }, `p${id}`)))
            there.set(id, cpu)
          }
        }
        expect(node.requested.get('cpu') ?? 0).toBe([...there.values()].reduce((sum, cpu) => sum + cpu, 0))
      }),
    )
  })
})
