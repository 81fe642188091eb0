import { expect, it } from 'vitest'
import { projectCsiNode, projectNode } from '../rows/cluster.ts'
import { projectCapacity } from '../rows/storage.ts'
import { aClaimView } from './claim.fixture.ts'
import { backInServiceWrite, explainRefusal, outOfServiceWrite } from './node-actions.ts'
import { buildNodeViews, statusOfNode } from './node-view.ts'

const GIB = 1024 ** 3
const meta = (name: string) => ({ name, uid: name, resourceVersion: '1', labels: { host: name } })
const aNode = (name: string, ready = 'True', spec: object = {}) =>
  projectNode({ metadata: meta(name), spec, status: { conditions: [{ type: 'Ready', status: ready }] } })
const pod = {
  uid: 'p',
  name: 'p',
  namespace: 'shop',
  node: 'n1',
  phase: 'Running',
  claims: ['a'],
  createdMs: 0,
  deletedMs: undefined,
}

it('SYS-13 shows the volumes, used slots, free storage and IO of a node', () => {
  const [view] = buildNodeViews({
    nodes: [aNode('n1'), aNode('n2')],
    csiNodes: [
      projectCsiNode({
        metadata: meta('n1'),
        spec: { drivers: [{ name: 'csi', nodeID: 'i', allocatable: { count: 8 } }] },
      }),
    ],
    claims: [
      aClaimView('a', { pods: [pod], usage: { iops: 5, throughputBytes: 10 } }),
      aClaimView('b', { usage: { node: 'n1' } }),
    ],
    capacities: ['fast', 'slow'].map((storageClassName) =>
      projectCapacity({
        metadata: meta(storageClassName),
        storageClassName,
        nodeTopology: { matchLabels: { host: 'n1' } },
        capacity: '30Gi',
      }),
    ),
    driverOf: () => 'csi',
  })
  expect(view).toMatchObject({
    drivers: [{ name: 'csi', usedSlots: 1, slots: 8 }],
    promisedBytes: 20 * GIB,
    freeBytes: 30 * GIB,
    iops: 5,
    throughputBytes: 10,
  })
  expect(view!.claims).toHaveLength(2)
})

it('shows amounts as unknown if they are neither measured nor reported', () => {
  const [view] = buildNodeViews({
    nodes: [aNode('n1')],
    csiNodes: [],
    claims: [],
    capacities: [],
    driverOf: () => undefined,
  })
  expect(view).toMatchObject({ drivers: undefined, freeBytes: undefined, iops: undefined })
})

it.each([
  [aNode('n'), 'Ready'],
  [aNode('n', 'False'), 'Not ready'],
  [aNode('n', 'Unknown'), 'Unreachable'],
  [aNode('n', 'True', { unschedulable: true }), 'Cordoned'],
  [
    aNode('n', 'Unknown', { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] }),
    'Out of service',
  ],
])('the status of node %# is %s', (node, word) => {
  expect(statusOfNode(node).word).toBe(word)
})

it('SYS-13 allows marking a node as out of service only if it is not ready', () => {
  expect(explainRefusal(aNode('n'), true)).toContain('damage')
  expect(explainRefusal(aNode('n', 'Unknown'), false)).toContain('permission to patch nodes')
  expect(explainRefusal(aNode('n', 'Unknown'), true)).toBeUndefined()
})

it('SYS-13 explains why a node cannot be put back in service, even if it is ready', () => {
  const node = aNode('n', 'True', { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] })
  expect(explainRefusal(node, undefined)).toBe('Your permissions are being checked.')
  expect(explainRefusal(node, false)).toBe('You need permission to patch nodes.')
  expect(explainRefusal(node, true)).toBeUndefined()
})

it('marks and unmarks a node without changing other taints', () => {
  expect(outOfServiceWrite({ name: 'n', taints: [] }).body).toMatchObject([{ path: '/spec/taints' }])
  const taints = [
    { key: 'other', effect: 'NoSchedule' },
    { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' },
  ]
  expect(outOfServiceWrite({ name: 'n', taints }).body).toMatchObject([{ path: '/spec/taints/-' }])
  expect(backInServiceWrite({ name: 'n', taints }).body).toMatchObject([
    { op: 'test', path: '/spec/taints/1/key' },
    { op: 'remove', path: '/spec/taints/1' },
  ])
})
