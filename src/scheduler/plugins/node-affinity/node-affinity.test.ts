import { describe, expect, it } from 'vitest'
import { aNode, aPod, rejections, scores } from '../plugins.fixture.ts'
import { NODE_AFFINITY_MISMATCH, nodeAffinity } from './node-affinity.ts'

describe('NodeAffinity', () => {
  const nodeInZoneA = aNode({ name: 'n1', metadata: { labels: { zone: 'a', cores: '8' } } })
  const requiredAffinity = (...nodeSelectorTerms: object[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  })
  const expression = (key: string, operator: string, values?: string[]) => ({
    matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
  })

  it('accepts a node that matches all labels of the node selector and one of the affinity terms', () => {
    const matches = (spec: object) => rejections(nodeAffinity, aPod(spec), nodeInZoneA).length === 0
    expect(matches({ nodeSelector: { zone: 'a' } })).toBe(true)
    expect(matches({ nodeSelector: { zone: 'a', disk: 'ssd' } })).toBe(false)
    expect(matches(requiredAffinity(expression('zone', 'In', ['b']), expression('cores', 'Gt', ['4'])))).toBe(true)
    expect(matches({ nodeSelector: { zone: 'b' }, ...requiredAffinity(expression('zone', 'In', ['a'])) })).toBe(false)
    expect(matches(requiredAffinity({}))).toBe(false)
    expect(matches(requiredAffinity({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }))).toBe(
      true,
    )
    expect(rejections(nodeAffinity, aPod({ nodeSelector: { zone: 'b' } }), nodeInZoneA)).toEqual([
      NODE_AFFINITY_MISMATCH.message,
    ])
  })

  it('scores nodes by the sum of the preferred weights', () => {
    const preferredTerms = [
      { weight: 30, preference: expression('zone', 'In', ['a']) },
      { weight: 10, preference: expression('cores', 'Exists') },
    ]
    const pod = aPod({
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferredTerms } },
    })
    const nodeWithCores = aNode({ metadata: { labels: { cores: '1' } } })
    expect(scores(nodeAffinity, pod, [nodeInZoneA, nodeWithCores, aNode()])).toEqual([100, 25, 0])
  })
})
