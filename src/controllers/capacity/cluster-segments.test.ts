import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject, Stored } from '../../api/kind.ts'
import type { CacheHandlers } from '../../runtime/cache.ts'
import { createClusterSegments } from './cluster-segments.ts'

/** Creates a fake cache that notifies its subscribers. */
function createFakeCache<T extends KubeObject>() {
  const objects = new Map<string, Stored<T>>()
  const subscribers = new Set<CacheHandlers<T>>()
  return {
    cache: {
      get: ({ name }: { name: string }) => objects.get(name),
      subscribe(handlers: CacheHandlers<T>) {
        for (const object of objects.values()) handlers.added?.(object)
        subscribers.add(handlers)
        return () => void subscribers.delete(handlers)
      },
    } as never,
    put(newObject: T) {
      const object = newObject as Stored<T>
      const { name } = object.metadata
      const oldObject = objects.get(name)
      objects.set(name, object)
      for (const subscriber of subscribers)
        oldObject ? subscriber.updated?.(object, oldObject) : subscriber.added?.(object)
    },
    delete(name: string) {
      const oldObject = objects.get(name)
      if (!objects.delete(name)) return
      for (const subscriber of subscribers) subscriber.deleted?.(oldObject!, oldObject!)
    },
  }
}

const aNode = (name: string, labels: Record<string, string>, taints: readonly { key: string }[] = []) => ({
  metadata: { name, labels },
  spec: { taints },
})
const aCsiNode = (name: string, keys?: readonly string[], driver = 'd') => ({
  metadata: { name },
  spec: {
    drivers: [
      { name: 'other', nodeID: 'x', topologyKeys: ['host'] },
      { name: driver, topologyKeys: keys },
    ],
  },
})

function createCluster() {
  const nodes = createFakeCache<ReturnType<typeof aNode>>()
  const csiNodes = createFakeCache<ReturnType<typeof aCsiNode>>()
  const start = () => {
    const segments = createClusterSegments({ driverName: 'd', nodes: nodes.cache, csiNodes: csiNodes.cache })
    const changes: string[] = []
    segments.follow(({ id }) => changes.push(`${segments.get(id) ? '+' : '-'}${id}`))
    return { segments, changes, ids: () => [...segments.all()].map(({ id }) => id).sort() }
  }
  return { nodes, csiNodes, start }
}

describe('createClusterSegments', () => {
  it('CAP-4 groups nodes with equal labels into one segment, regardless of key order', () => {
    const { nodes, csiNodes, start } = createCluster()
    for (const [name, keys] of [
      ['n1', ['zone', 'rack']],
      ['n2', ['rack', 'zone']],
    ] as const) {
      nodes.put(aNode(name, { zone: 'a', rack: '1', other: name }))
      csiNodes.put(aCsiNode(name, keys))
    }
    expect(start().ids()).toEqual(['[["rack","1"],["zone","a"]]'])
  })

  it('CAP-4 includes a node as soon as its CSINode, Node and all labels exist, and follows their changes', () => {
    const { nodes, csiNodes, start } = createCluster()
    const { ids, changes, segments } = start()
    csiNodes.put(aCsiNode('n1', ['zone']))
    expect(ids()).toEqual([])
    nodes.put(aNode('n1', {}))
    expect(ids()).toEqual([])
    nodes.put(aNode('n1', { zone: 'a' }))
    expect(ids()).toEqual(['[["zone","a"]]'])
    expect(segments.segmentOfNode('n1')?.labels).toEqual({ zone: 'a' })
    nodes.put(aNode('n1', { zone: 'b' }))
    csiNodes.put(aCsiNode('n1', ['zone'], 'another driver'))
    expect(changes).toEqual(['+[["zone","a"]]', '+[["zone","b"]]', '-[["zone","a"]]', '-[["zone","b"]]'])
  })

  it.each(['node.kubernetes.io/out-of-service', 'stowage.dev/quarantine'])(
    'PLUS-11 CAP-4 leaves a node out while it has the taint %s',
    (key) => {
      const { nodes, csiNodes, start } = createCluster()
      const { changes } = start()
      csiNodes.put(aCsiNode('n1', ['zone']))
      nodes.put(aNode('n1', { zone: 'a' }))
      nodes.put(aNode('n1', { zone: 'a' }, [{ key }]))
      nodes.put(aNode('n1', { zone: 'a' }))
      expect(changes).toEqual(['+[["zone","a"]]', '-[["zone","a"]]', '+[["zone","a"]]'])
    },
  )

  it('CAP-4 returns one segment for a driver without topology keys', () => {
    const { nodes, csiNodes, start } = createCluster()
    for (const name of ['n1', 'n2']) {
      nodes.put(aNode(name, { zone: name }))
      csiNodes.put(aCsiNode(name, name === 'n1' ? undefined : []))
    }
    expect(start().ids()).toEqual(['[]'])
  })

  it('CAP-4 reports every change and ends with the same segments as after a restart', () => {
    const name = fc.constantFrom('n1', 'n2', 'n3')
    const value = fc.constantFrom('a', 'b')
    const stepArbitrary = fc.oneof(
      fc.record({ do: fc.constant('putNode' as const), name, zone: fc.option(value), rack: fc.option(value) }),
      fc.record({
        do: fc.constant('putCsiNode' as const),
        name,
        keys: fc.constantFrom(undefined, ['zone'], ['rack', 'zone']),
      }),
      fc.record({
        do: fc.constantFrom('deleteNode' as const, 'deleteCsiNode' as const, 'removeDriver' as const),
        name,
      }),
    )
    fc.assert(
      fc.property(fc.array(stepArbitrary, { maxLength: 30, size: 'max' }), (steps) => {
        const { nodes, csiNodes, start } = createCluster()
        const followedCluster = start()
        for (const step of steps) {
          if (step.do === 'putNode') {
            const labels = Object.entries({ zone: step.zone, rack: step.rack }).filter(([, label]) => label !== null)
            nodes.put(aNode(step.name, Object.fromEntries(labels) as Record<string, string>))
          } else if (step.do === 'putCsiNode') csiNodes.put(aCsiNode(step.name, step.keys))
          else if (step.do === 'deleteNode') nodes.delete(step.name)
          else if (step.do === 'deleteCsiNode') csiNodes.delete(step.name)
          else csiNodes.put(aCsiNode(step.name, [], 'another driver'))
        }
        const restartedCluster = start()
        expect(followedCluster.ids()).toEqual(restartedCluster.ids())
        expect(followedCluster.segments.size).toBe(restartedCluster.ids().length)
        for (const node of ['n1', 'n2', 'n3']) {
          expect(followedCluster.segments.segmentOfNode(node)?.id).toBe(
            restartedCluster.segments.segmentOfNode(node)?.id,
          )
        }
        const currentIds = new Set<string>()
        for (const change of followedCluster.changes) {
          if (change.startsWith('+')) currentIds.add(change.slice(1))
          else currentIds.delete(change.slice(1))
        }
        expect([...currentIds].sort()).toEqual(restartedCluster.ids())
      }),
    )
  })
})
