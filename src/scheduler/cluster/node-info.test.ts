import { describe, expect, it } from 'vitest'
import { NodeInfo } from './node-info.ts'
import { podInfoOf } from './pod-info.ts'

const buildPod = (name: string, requests: Record<string, string>, labels: Record<string, string> = {}) =>
  podInfoOf({
    metadata: { namespace: 'default', name, labels },
    spec: { containers: [{ name: 'main', resources: { requests } }] },
  } as never)

describe('NodeInfo.addPod', () => {
  it('replaces a pod on the node, with the same or other requests, and counts each pod once', () => {
    const node = new NodeInfo('n')
    node.addPod(buildPod('other', { cpu: '1' }))
    node.addPod(buildPod('p', { cpu: '100m', memory: '1Ki' }))
    const sums = () => ({ ...Object.fromEntries(node.requested), nonZeroCpu: node.nonZeroCpu, pods: node.pods.size })
    const expectedSums = { cpu: 1_100, memory: 1_024, nonZeroCpu: 1_100, pods: 2 }
    expect(sums()).toEqual(expectedSums)

    const { podsVersion } = node
    const updatedPod = buildPod('p', { memory: '1Ki', cpu: '0.1' }, { changed: 'yes' })
    node.addPod(updatedPod)
    expect(sums()).toEqual(expectedSums)
    expect(node.pods.get('default/p')).toBe(updatedPod)
    expect(node.podsVersion).toBeGreaterThan(podsVersion)

    node.addPod(buildPod('p', { cpu: '200m' }))
    expect(sums()).toEqual({ cpu: 1_200, nonZeroCpu: 1_200, pods: 2 })
    node.removePod('default/p')
    expect(sums()).toEqual({ cpu: 1_000, nonZeroCpu: 1_000, pods: 1 })
  })
})
