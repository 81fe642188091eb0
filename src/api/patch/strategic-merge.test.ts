import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonObject, type JsonValue, jsonEquals } from '../json-value.ts'
import { type MergeField, type MergeShape, strategicMerge } from './strategic-merge.ts'

const shape = (fields: Record<string, MergeField>): MergeShape => ({ field: (name) => fields[name] })

const container = shape({
  env: { merge: 'name' },
  ports: { merge: 'containerPort' },
  volumeMounts: { merge: 'mountPath' },
})
const pod = shape({
  metadata: { shape: shape({ finalizers: { merge: '' }, ownerReferences: { merge: 'uid' } }) },
  spec: {
    shape: shape({
      containers: { merge: 'name', shape: container },
      volumes: { merge: 'name', shape: shape({}) },
      tolerations: {},
    }),
  },
  status: { shape: shape({ conditions: { merge: 'type' } }) },
})

const merge = (document: unknown, patch: unknown) => strategicMerge(document as JsonObject, patch as JsonValue, pod)

describe('objects', () => {
  it.each([
    ['an empty patch changes nothing', { a: { b: 1 } }, {}, { a: { b: 1 } }],
    ['values are replaced, others kept', { a: 1, b: 2 }, { b: 3, c: 4 }, { a: 1, b: 3, c: 4 }],
    ['maps are merged', { a: { x: 1, y: 2 } }, { a: { y: 3 } }, { a: { x: 1, y: 3 } }],
    ['null removes', { a: 1, b: { c: 1, d: 1 } }, { a: null, b: { c: null } }, { b: { d: 1 } }],
    ['null for an absent field changes nothing', {}, { a: null, b: { c: null, d: { e: null } } }, { b: { d: {} } }],
    ['a map can replace a value', { a: 1 }, { a: { b: 2, c: null } }, { a: { b: 2 } }],
    ['a value can replace a map', { a: { b: 1 } }, { a: 2 }, { a: 2 }],
    ['unknown lists are replaced', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['$patch replace', { a: { x: 1 } }, { a: { $patch: 'replace', y: 2 } }, { a: { y: 2 } }],
    ['$patch replace of an absent field', {}, { a: { $patch: 'replace', y: 2 } }, { a: { y: 2 } }],
    ['$patch replace of the document', { a: 1 }, { $patch: 'replace', b: { c: null, d: 1 } }, { b: { d: 1 } }],
    ['$patch delete', { a: { x: 1 }, b: 1 }, { a: { $patch: 'delete', x: 2 } }, { a: {}, b: 1 }],
    ['$patch delete of an absent field', {}, { a: { $patch: 'delete' } }, {}],
    ['$patch merge is the default', { a: { x: 1 } }, { a: { $patch: 'merge', y: 2 } }, { a: { x: 1, y: 2 } }],
    [
      '$retainKeys drops all other keys',
      { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } },
      { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      { strategy: { type: 'Recreate' } },
    ],
    [
      '$retainKeys keeps unchanged keys and permits removals',
      { s: { a: 1, b: 2, c: 3 } },
      { s: { $retainKeys: ['a', 'b'], b: 3, c: null } },
      { s: { a: 1, b: 3 } },
    ],
  ])('%s', (_, document, patch, result) => {
    expect(merge(document, patch)).toEqual(result)
  })

  it('treat inherited names as ordinary keys', () => {
    const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    expect(JSON.stringify(merge({}, patch))).toBe(JSON.stringify(patch))
    expect({}).not.toHaveProperty('polluted')
    expect(JSON.stringify(merge(patch, JSON.parse('{"__proto__":null,"constructor":null}')))).toBe('{}')
  })
})

describe('lists merged by key', () => {
  const web = {
    name: 'web',
    image: 'web:1',
    env: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
  }
  const log = { name: 'log', image: 'log:1' }
  const spec = { containers: [web, log], tolerations: [{ key: 'x' }] }

  it.each([
    [
      'an item is changed in place',
      { containers: [{ name: 'web', image: 'web:2' }] },
      { containers: [{ ...web, image: 'web:2' }, log] },
    ],
    [
      'a new item precedes items that are not in the patch',
      { containers: [{ name: 'new', image: 'new:1' }] },
      { containers: [{ name: 'new', image: 'new:1' }, web, log] },
    ],
    ['an item is removed', { containers: [{ $patch: 'delete', name: 'web' }] }, { containers: [log] }],
    ['removing an absent item changes nothing', { containers: [{ $patch: 'delete', name: 'x' }] }, {}],
    [
      'an item is removed and another with its name is added',
      {
        containers: [
          { $patch: 'delete', name: 'web' },
          { name: 'web', image: 'web:3' },
        ],
      },
      { containers: [{ name: 'web', image: 'web:3' }, log] },
    ],
    [
      'all are replaced',
      { containers: [{ name: 'only', image: 'only:1' }, { $patch: 'replace' }] },
      { containers: [{ name: 'only', image: 'only:1' }] },
    ],
    [
      'an item may have $patch merge',
      { containers: [{ name: 'log', $patch: 'merge', image: 'log:2' }] },
      { containers: [web, { ...log, image: 'log:2' }] },
    ],
    ['an empty list changes nothing', { containers: [] }, {}],
    ['null removes the list', { containers: null }, { containers: undefined }],
    ['a list without a key is replaced', { tolerations: [{ key: 'y' }] }, { tolerations: [{ key: 'y' }] }],
    [
      'nested lists merge by their own keys',
      {
        containers: [
          {
            name: 'web',
            env: [
              { name: 'B', value: null },
              { name: 'C', value: '3' },
            ],
          },
        ],
      },
      {
        containers: [{ ...web, env: [{ name: 'A', value: '1' }, { name: 'B' }, { name: 'C', value: '3' }] }, log],
      },
    ],
    [
      'a new list is added without directives',
      {
        volumes: [
          { name: 'data', emptyDir: { sizeLimit: null }, $retainKeys: ['name', 'emptyDir'] },
          { $patch: 'delete', name: 'old' },
        ],
        '$setElementOrder/volumes': [{ name: 'data' }],
      },
      { volumes: [{ name: 'data', emptyDir: {} }] },
    ],
    [
      'a replaced list is added without directives',
      { tolerations: [{ key: 'y', value: null, $patch: 'merge' }, { $patch: 'replace' }] },
      { tolerations: [{ key: 'y' }] },
    ],
    [
      'the order is set without changing an item',
      { '$setElementOrder/containers': [{ name: 'log' }, { name: 'web' }] },
      { containers: [log, web] },
    ],
    [
      'the order may list absent items',
      { '$setElementOrder/containers': [{ name: 'x' }, { name: 'log' }, { name: 'y' }, { name: 'web' }] },
      { containers: [log, web] },
    ],
    ['an order for an absent list changes nothing', { '$setElementOrder/volumes': [{ name: 'a' }] }, {}],
  ])('%s', (_, patch, changed) => {
    expect(merge({ spec }, { spec: patch })).toEqual({ spec: { ...spec, ...(changed as object) } })
  })

  it('keys may be numbers, and 80 is not "80"', () => {
    const document = { spec: { containers: [{ name: 'web', ports: [{ containerPort: 80, name: 'http' }] }] } }
    const patched = merge(document, {
      spec: { containers: [{ name: 'web', ports: [{ containerPort: 80, protocol: 'TCP' }, { containerPort: 443 }] }] },
    })
    expect(patched).toEqual({
      spec: {
        containers: [
          { name: 'web', ports: [{ containerPort: 80, name: 'http', protocol: 'TCP' }, { containerPort: 443 }] },
        ],
      },
    })
  })
})

describe('patches of kubectl and controllers', () => {
  const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': '{}\n' }

  it('apply that removes a container, a label and an env variable, and keeps an injected sidecar', () => {
    const live = {
      metadata: { labels: { app: 'web', old: 'yes' }, annotations: lastApplied },
      spec: {
        containers: [
          {
            name: 'web',
            image: 'web:1',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
          },
          { name: 'gone', image: 'gone:1' },
          { name: 'injected', image: 'sidecar:1' },
        ],
      },
    }
    const patch = {
      metadata: { annotations: lastApplied, labels: { old: null } },
      spec: {
        '$setElementOrder/containers': [{ name: 'web' }],
        containers: [
          {
            '$setElementOrder/env': [{ name: 'B' }],
            env: [{ $patch: 'delete', name: 'A' }],
            image: 'web:2',
            name: 'web',
          },
          { $patch: 'delete', name: 'gone' },
        ],
      },
    }
    expect(merge(live, patch)).toEqual({
      metadata: { labels: { app: 'web' }, annotations: lastApplied },
      spec: {
        containers: [
          { name: 'web', image: 'web:2', env: [{ name: 'B', value: '2' }] },
          { name: 'injected', image: 'sidecar:1' },
        ],
      },
    })
  })

  it('edit that turns one kind of volume into another', () => {
    const live = {
      spec: {
        volumes: [
          { name: 'data', emptyDir: { medium: 'Memory' } },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    }
    const patch = {
      spec: {
        '$setElementOrder/volumes': [{ name: 'data' }, { name: 'tmp' }],
        volumes: [
          {
            $retainKeys: ['name', 'persistentVolumeClaim'],
            emptyDir: null,
            name: 'data',
            persistentVolumeClaim: { claimName: 'c' },
          },
        ],
      },
    }
    expect(merge(live, patch)).toEqual({
      spec: {
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    })
  })

  it('a provisioner that removes its finalizer', () => {
    const live = {
      metadata: { finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'] },
    }
    const patch = {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['external-provisioner.volume.kubernetes.io/finalizer'],
        '$setElementOrder/finalizers': ['kubernetes.io/pv-protection'],
      },
    }
    expect(merge(live, patch)).toEqual({ metadata: { finalizers: ['kubernetes.io/pv-protection'] } })
  })

  it('a controller that adds a finalizer another one does not know', () => {
    const patch = { metadata: { finalizers: ['mine'], '$setElementOrder/finalizers': ['theirs', 'mine'] } }
    expect(merge({ metadata: { finalizers: ['theirs', 'new'] } }, patch)).toEqual({
      metadata: { finalizers: ['theirs', 'mine', 'new'] },
    })
    expect(merge({ metadata: {} }, patch)).toEqual({ metadata: { finalizers: ['mine'] } })
  })

  it('a resizer that sets one condition and removes another', () => {
    const live = {
      status: {
        conditions: [
          { type: 'Resizing', status: 'True' },
          { type: 'Other', status: 'True' },
        ],
      },
    }
    const patch = {
      status: {
        '$setElementOrder/conditions': [{ type: 'FileSystemResizePending' }, { type: 'Other' }],
        conditions: [
          { type: 'FileSystemResizePending', status: 'True' },
          { $patch: 'delete', type: 'Resizing' },
        ],
      },
    }
    expect(merge(live, patch)).toEqual({
      status: {
        conditions: [
          { type: 'FileSystemResizePending', status: 'True' },
          { type: 'Other', status: 'True' },
        ],
      },
    })
  })

  it('owner references merged by uid', () => {
    const live = { metadata: { ownerReferences: [{ uid: '1', name: 'a' }] } }
    const patch = {
      metadata: {
        ownerReferences: [
          { uid: '2', name: 'b' },
          { uid: '1', controller: true },
        ],
      },
    }
    expect(merge(live, patch)).toEqual({
      metadata: {
        ownerReferences: [
          { uid: '2', name: 'b' },
          { uid: '1', name: 'a', controller: true },
        ],
      },
    })
  })
})

describe('SYS-10 rejects', () => {
  const live = {
    metadata: { finalizers: ['a'] },
    spec: { containers: [{ name: 'web', env: [{ name: 'A' }] }], s: { a: 1 } },
  }
  it.each([
    ['a patch that is not an object', [], 'a strategic merge patch must be an object'],
    [
      'an unknown directive',
      { spec: { $patch: 'remove' } },
      'spec has the unknown directive $patch: "remove"; expected replace, delete or merge',
    ],
    [
      'an unknown directive on an item',
      { spec: { containers: [{ name: 'web', $patch: 1 }] } },
      'spec.containers has the unknown directive $patch: 1',
    ],
    [
      'an item without its key',
      { spec: { containers: [{ image: 'x' }] } },
      'spec.containers has an item without its merge key "name"',
    ],
    [
      'a new item without its key, deep down',
      { spec: { containers: [{ name: 'x', env: [{ value: '1' }] }] } },
      'spec.containers[name="x"].env has an item without its merge key "name"',
    ],
    ['a deletion without its key', { spec: { containers: [{ $patch: 'delete' }] } }, 'without its merge key "name"'],
    ['an object for a key', { spec: { containers: [{ name: {} }] } }, 'merge key "name" is not a scalar'],
    [
      'a scalar where objects are merged',
      { spec: { containers: ['web'] } },
      'spec.containers is merged by key, so its items must be objects',
    ],
    [
      'an object where scalars are merged',
      { metadata: { finalizers: [{}] } },
      'metadata.finalizers is a list of scalars',
    ],
    [
      'an order that is not a list',
      { spec: { '$setElementOrder/containers': {} } },
      'spec.containers has a $setElementOrder that is not a list',
    ],
    [
      'an order without a list',
      { spec: { $setElementOrder: [] } },
      'spec has "$setElementOrder", which must have the form $setElementOrder/<list>',
    ],
    [
      'an order without the key',
      { spec: { '$setElementOrder/containers': [{}] } },
      'spec.containers has an item without its merge key "name"',
    ],
    [
      'an item that is not in its order',
      { spec: { containers: [{ name: 'web' }], '$setElementOrder/containers': [{ name: 'log' }] } },
      'spec.containers has "web" in the patch, but not at the same position in its $setElementOrder',
    ],
    [
      'items that contradict their order',
      { metadata: { finalizers: ['b', 'a'], '$setElementOrder/finalizers': ['a', 'b'] } },
      'metadata.finalizers has "a" in the patch, but not at the same position in its $setElementOrder',
    ],
    [
      'a deletion that is not a list',
      { metadata: { '$deleteFromPrimitiveList/finalizers': 'a' } },
      'metadata.finalizers has a $deleteFromPrimitiveList that is not a list',
    ],
    [
      '$retainKeys that is not a list',
      { spec: { s: { $retainKeys: 'a' } } },
      'spec.s has a $retainKeys that is not a list',
    ],
    [
      'a key that is not in $retainKeys',
      { spec: { s: { $retainKeys: ['a'], b: 1 } } },
      'spec.s contains "b", which is not listed in its $retainKeys',
    ],
  ])('%s', (_, patch, because) => {
    expect(() => merge(live, patch)).toThrow(because)
  })
})

describe('properties', () => {
  it('is idempotent, removes all directives and does not modify its input', () => {
    fc.assert(
      fc.property(aDocument, aPatch, (document, patch) => {
        const before = JSON.stringify([document, patch])
        const once = merge(document, patch)
        expect(JSON.stringify([document, patch])).toBe(before)
        expect(JSON.stringify(once)).not.toMatch(/\$|null/)
        expect(merge(once, patch)).toEqual(once)
      }),
      { numRuns: 500 },
    )
  })

  it('an empty patch is the identity', () => {
    fc.assert(fc.property(aDocument, (document) => jsonEquals(merge(document, {}), document as JsonObject)))
  })

  it('the result contains all fields of the patch', () => {
    fc.assert(
      fc.property(aDocument, someContainers, (document, containers) => {
        const result = merge(document, { spec: { containers } }) as { spec: { containers: { name: string }[] } }
        for (const one of containers) {
          const found = result.spec.containers.filter(({ name }) => name === one.name)
          expect(found).toHaveLength(1)
          expect(found[0]).toMatchObject({ image: one.image })
        }
      }),
    )
  })
})

const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'))
const byName = <T extends object>(rest: fc.Arbitrary<T>) =>
  names.chain((list) => fc.tuple(...list.map((name) => rest.map((more) => ({ name, ...more })))))
const anEnv = byName(fc.record({ value: fc.constantFrom('1', '2') }))
const someContainers = byName(fc.record({ image: fc.constantFrom('x', 'y'), env: anEnv }, { requiredKeys: ['image'] }))
const aDocument = fc.record(
  {
    metadata: fc.record(
      {
        labels: fc.dictionary(fc.constantFrom('k', 'l'), fc.string({ unit: fc.constantFrom('v') })),
        finalizers: names,
      },
      { requiredKeys: [] },
    ),
    spec: fc.record({ containers: someContainers, tolerations: anEnv }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
)
const envPatch = byName(fc.oneof(fc.record({ value: fc.constantFrom('3', null) }), fc.constant({ $patch: 'delete' })))
const containersPatch = byName(
  fc.oneof(
    fc.record({ image: fc.constantFrom('z', null), env: envPatch, $patch: fc.constant('merge') }, { requiredKeys: [] }),
    fc.constant({ $patch: 'delete' }),
  ),
)
const aPatch = fc
  .record({
    set: names,
    gone: names,
    containers: containersPatch,
    labels: fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('w', null)),
  })
  .map(({ set, gone, containers, labels }) => ({
    metadata: {
      labels,
      finalizers: set,
      '$deleteFromPrimitiveList/finalizers': gone,
      '$setElementOrder/finalizers': [...set, ...gone.filter((one) => !set.includes(one))],
    },
    spec: { containers, '$setElementOrder/containers': containers.map(({ name }) => ({ name })) },
  }))
