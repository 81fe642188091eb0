import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { requestsOf } from '../cluster/amounts.ts'
import { NodeInfo } from '../cluster/node-info.ts'
import type { Plugin } from '../framework/plugin.ts'
import { podInfo } from '../cluster/pod-info.ts'
import { hostPorts, REASON_PORTS } from './node-ports/node-ports.ts'
import { knownRules } from './unsupported-rules/unsupported-rules.ts'
import { nodeAffinity, REASON_AFFINITY } from './node-affinity/node-affinity.ts'
import { REASON_PODS, resources } from './node-resources/node-resources.ts'
import { REASON_TAINT, taints } from './taint-toleration/taint-toleration.ts'
import { REASON_UNSCHEDULABLE, unschedulable } from './node-unschedulable/node-unschedulable.ts'

const aNode = (parts: Partial<Node> & { name?: string } = {}): NodeInfo => {
  const { name = 'n1', ...rest } = parts
  const view = new NodeInfo(name)
  view.setNode({ ...rest, metadata: { name, ...rest.metadata } } as Node)
  return view
}
const aPod = (spec: object = {}, name = 'p'): Pod => ({
  metadata: { namespace: 'default', name, uid: name },
  spec: { containers: [{ name: 'c' }], ...spec } as any,
})
const asking = (requests: Record<string, string>, more: object = {}, name = 'p') =>
  aPod({ containers: [{ name: 'c', resources: { requests } }], ...more }, name)
function reasons(plugin: Plugin, pod: Pod, node: NodeInfo): readonly string[] {
  const judgement = plugin.prepare(podInfo(pod))
  if (judgement.is === 'hopeless') throw new Error(judgement.because)
  return (judgement.is === 'judge' && judgement.refuses?.(node)) || []
}
function scores(plugin: Plugin, pod: Pod, nodes: readonly NodeInfo[]): readonly number[] | undefined {
  const judgement = plugin.prepare(podInfo(pod))
  return judgement.is === 'judge' ? judgement.scores?.(nodes) : undefined
}

describe('nodes that take no new pods', () => {
  const closed = aNode({ spec: { unschedulable: true } })
  it('CAP-12 are refused', () => {
    expect(reasons(unschedulable, aPod(), closed)).toEqual([REASON_UNSCHEDULABLE])
    expect(reasons(unschedulable, aPod(), aNode())).toEqual([])
  })
  it('CAP-12 take pods that tolerate exactly that', () => {
    const tolerations = [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }]
    expect(reasons(unschedulable, aPod({ tolerations }), closed)).toEqual([])
  })
})

describe('taints', () => {
  const tainted = (effect: string, value = 'v') =>
    aNode({ spec: { taints: [{ key: 'k', value, effect: effect as any }] } })
  const refused = (toleration: object, effect = 'NoSchedule', value = 'v') =>
    reasons(taints, aPod({ tolerations: [toleration] }), tainted(effect, value)).length > 0

  it('CAP-12 keep pods off, unless they are only a preference', () => {
    expect(reasons(taints, aPod(), tainted('NoSchedule'))).toEqual([REASON_TAINT])
    expect(reasons(taints, aPod(), tainted('NoExecute'))).toEqual([REASON_TAINT])
    expect(reasons(taints, aPod(), tainted('PreferNoSchedule'))).toEqual([])
  })

  it.each([
    [{ key: 'k', operator: 'Exists' }, false],
    [{ operator: 'Exists' }, false],
    [{ key: 'k', value: 'v' }, false],
    [{ key: 'k', operator: 'Equal', value: 'other' }, true],
    [{ key: 'other', operator: 'Exists' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoExecute' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
  ])('CAP-12 the toleration %j: refused %s', (toleration, expected) => {
    expect(refused(toleration)).toBe(expected)
  })

  it('CAP-12 are compared as numbers where the toleration says so', () => {
    expect(refused({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', '10')).toBe(false)
    expect(refused({ key: 'k', operator: 'Lt', value: '5' }, 'NoSchedule', '10')).toBe(true)
    expect(refused({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', 'many')).toBe(true)
  })

  it('CAP-12 that are only a preference make a node less liked', () => {
    expect(scores(taints, aPod(), [tainted('PreferNoSchedule'), aNode()])).toEqual([0, 100])
  })
})

describe('node selector and affinity', () => {
  const here = aNode({ name: 'here', metadata: { labels: { zone: 'a', cores: '8' } } })
  const required = (...nodeSelectorTerms: object[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  })
  const expression = (key: string, operator: string, values?: string[]) => ({
    matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
  })

  it('CAP-12 all of the selector, and one of the terms, must hold', () => {
    const is = (spec: object) => reasons(nodeAffinity, aPod(spec), here).length === 0
    expect(is({ nodeSelector: { zone: 'a' } })).toBe(true)
    expect(is({ nodeSelector: { zone: 'a', disk: 'ssd' } })).toBe(false)
    expect(is(required(expression('zone', 'In', ['b']), expression('cores', 'Gt', ['4'])))).toBe(true)
    expect(is({ nodeSelector: { zone: 'b' }, ...required(expression('zone', 'In', ['a'])) })).toBe(false)
    expect(is(required({}))).toBe(false)
    expect(is(required({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['here'] }] }))).toBe(true)
    expect(reasons(nodeAffinity, aPod({ nodeSelector: { zone: 'b' } }), here)).toEqual([REASON_AFFINITY])
  })

  it('CAP-12 preferences add up', () => {
    const preferred = [
      { weight: 30, preference: expression('zone', 'In', ['a']) },
      { weight: 10, preference: expression('cores', 'Exists') },
    ]
    const pod = aPod({ affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } })
    const there = aNode({ metadata: { labels: { cores: '1' } } })
    expect(scores(nodeAffinity, pod, [here, there, aNode()])).toEqual([100, 25, 0])
  })
})

describe('resources', () => {
  const roomy = (allocatable: Record<string, string> = { cpu: '4', memory: '8Gi', pods: '3' }) =>
    aNode({ status: { allocatable } })

  it('CAP-12 every shortage is named', () => {
    const node = roomy()
    node.addPod(podInfo(asking({ cpu: '3' }, {}, 'there')))
    expect(reasons(resources, asking({ cpu: '1500m', memory: '9Gi', 'example.com/gpu': '1' }), node)).toEqual([
      'Insufficient cpu',
      'Insufficient memory',
      'Insufficient example.com/gpu',
    ])
    expect(reasons(resources, asking({ cpu: '1' }), node)).toEqual([])
  })

  it('CAP-12 the number of pods is limited', () => {
    const node = roomy({ pods: '1' })
    node.addPod(podInfo(aPod({}, 'there')))
    expect(reasons(resources, aPod(), node)).toEqual([REASON_PODS])
  })

  it('CAP-12 a node that does not say what it has is not counted', () => {
    expect(reasons(resources, asking({ cpu: '100' }), aNode())).toEqual([])
  })

  it('CAP-12 the neediest moment counts: containers together, or one init container, and overhead on top', () => {
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

  it('CAP-12 the emptier node is liked better, also by pods that ask for nothing', () => {
    const [busy, idle] = [roomy(), roomy()]
    busy.addPod(podInfo(aPod({}, 'there')))
    const [first = 0, second = 0] = scores(resources, aPod(), [busy, idle]) ?? []
    expect(second).toBeGreaterThan(first)
  })

  it('CAP-12 sums stay right whatever comes and goes', () => {
    const pod = fc.record({ id: fc.nat(5), cpu: fc.nat(4_000), leaves: fc.boolean() })
    fc.assert(
      fc.property(fc.array(pod, { maxLength: 60, size: 'max' }), (changes) => {
        const node = roomy()
        const there = new Map<number, number>()
        for (const { id, cpu, leaves } of changes) {
          if (leaves) {
            node.removePod(`default/p${id}`)
            there.delete(id)
          } else {
            node.addPod(podInfo(asking({ cpu: `${cpu}m` }, {}, `p${id}`)))
            there.set(id, cpu)
          }
        }
        expect(node.requested.get('cpu') ?? 0).toBe([...there.values()].reduce((sum, cpu) => sum + cpu, 0))
      }),
    )
  })
})

describe('ports of a node', () => {
  const using = (hostPort: number, more: object = {}, name = 'p') =>
    aPod({ containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...more }] }] }, name)
  const taken = aNode()
  taken.addPod(podInfo(using(80, { hostIP: '10.0.0.1' }, 'there')))

  it.each([
    [using(80), [REASON_PORTS]],
    [using(80, { hostIP: '10.0.0.1' }), [REASON_PORTS]],
    [using(80, { hostIP: '10.0.0.2' }), []],
    [using(80, { protocol: 'UDP' }), []],
    [using(81), []],
  ])('CAP-12 are for one pod each (%#)', (pod, expected) => {
    expect(reasons(hostPorts, pod, taken)).toEqual(expected)
  })
})

describe('rules this scheduler does not know', () => {
  const because = (spec: object) => {
    const judgement = knownRules.prepare(podInfo(aPod(spec)))
    return judgement.is === 'hopeless' ? judgement.because : judgement.is
  }
  const term = { topologyKey: 'zone', labelSelector: {} }

  it('CAP-19 are refused by name where the pod insists, and passed over where it only prefers', () => {
    const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    expect(because({ affinity: { podAntiAffinity: required } })).toBe(
      'this scheduler does not know spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution: ' +
        'remove it, or name another scheduler in spec.schedulerName',
    )
    const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] }
    expect(because({ affinity: { podAntiAffinity: preferred } })).toBe('indifferent')
    const spread = (whenUnsatisfiable: string) => ({
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable }],
    })
    expect(because(spread('DoNotSchedule'))).toContain('topologySpreadConstraints')
    expect(because(spread('ScheduleAnyway'))).toBe('indifferent')
  })
})
