import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { podInfoOf } from '../../cluster/pod-info.ts'
import { requestsOf } from '../../cluster/resource-amounts.ts'
import { aNode, aPod, aPodWithRequests, rejections, scores } from '../plugins.fixture.ts'
import { nodeResources, TOO_MANY_PODS } from './node-resources.ts'

describe('NodeResourcesFit', () => {
  const sizedNode = (allocatable: Record<string, string> = { cpu: '4', memory: '8Gi', pods: '3' }) =>
    aNode({ status: { allocatable } })

  it('CAP-12 lists every insufficient resource', () => {
    const node = sizedNode()
    node.addPod(podInfoOf(aPodWithRequests({ cpu: '3' }, 'existing')))
    expect(
      rejections(nodeResources, aPodWithRequests({ cpu: '1500m', memory: '9Gi', 'example.com/gpu': '1' }), node),
    ).toEqual(['Insufficient cpu', 'Insufficient memory', 'Insufficient example.com/gpu'])
    expect(rejections(nodeResources, aPodWithRequests({ cpu: '1' }), node)).toEqual([])
  })

  it('limits the number of pods', () => {
    const node = sizedNode({ pods: '1' })
    node.addPod(podInfoOf(aPod({}, 'existing')))
    expect(rejections(nodeResources, aPod(), node)).toEqual([TOO_MANY_PODS.message])
  })

  it('accepts a node that reports no resources', () => {
    expect(rejections(nodeResources, aPodWithRequests({ cpu: '100' }), aNode())).toEqual([])
  })

  it('uses the peak requests of containers and init containers, or those of the pod, plus overhead', () => {
    const cpu = (spec: object) => requestsOf(aPod(spec)).get('cpu')
    const container = (amount: string, restartPolicy?: string) => ({
      name: 'c',
      resources: { requests: { cpu: amount } },
      ...(restartPolicy ? { restartPolicy } : {}),
    })
    expect(cpu({ containers: [container('1'), container('500m')] })).toBe(1_500)
    expect(cpu({ containers: [container('1')], initContainers: [container('3'), container('2')] })).toBe(3_000)
    expect(cpu({ containers: [container('1')], initContainers: [container('1', 'Always'), container('3')] })).toBe(
      4_000,
    )
    expect(cpu({ containers: [container('2')], initContainers: [container('1', 'Always')] })).toBe(3_000)
    expect(cpu({ containers: [container('1')], overhead: { cpu: '250m' } })).toBe(1_250)
    expect(cpu({ containers: [container('1'), container('1')], resources: { requests: { cpu: '1' } } })).toBe(1_000)
    expect(
      requestsOf(aPod({ containers: [{ name: 'c', resources: { requests: { memory: '1.5' } } }] })).get('memory'),
    ).toBe(2)
  })

  it('scores the node with fewer pods higher, even for pods without requests', () => {
    const [busy, idle] = [sizedNode(), sizedNode()]
    busy.addPod(podInfoOf(aPod({}, 'existing')))
    const [busyScore = 0, idleScore = 0] = scores(nodeResources, aPod(), [busy, idle]) ?? []
    expect(idleScore).toBeGreaterThan(busyScore)
  })

  it('keeps the requested resources of a node correct when pods are added and removed', () => {
    const change = fc.record({ id: fc.nat(5), cpu: fc.nat(4_000), isRemoved: fc.boolean() })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60, size: 'max' }), (changes) => {
        const node = sizedNode()
        const cpuByPod = new Map<number, number>()
        for (const { id, cpu, isRemoved } of changes) {
          if (isRemoved) {
            node.removePod(`default/p${id}`)
            cpuByPod.delete(id)
          } else {
            node.addPod(podInfoOf(aPodWithRequests({ cpu: `${cpu}m` }, `p${id}`)))
            cpuByPod.set(id, cpu)
          }
        }
        expect(node.requested.get('cpu') ?? 0).toBe([...cpuByPod.values()].reduce((sum, cpu) => sum + cpu, 0))
      }),
    )
  })
})
