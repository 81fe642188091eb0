import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonObject, type JsonValue, jsonEquals } from '../json-value.ts'
import { applyStrategicMerge, type MergeField, type MergeShape } from './strategic-merge.ts'

const createShape = (fields: Record<string, MergeField>): MergeShape => ({ findField: (name) => fields[name] })

const container = createShape({
  env: { merge: 'name' },
  ports: { merge: 'containerPort' },
  volumeMounts: { merge: 'mountPath' },
})
const pod = createShape({
  metadata: { shape: createShape({ finalizers: { merge: '' }, ownerReferences: { merge: 'uid' } }) },
  spec: {
    shape: createShape({
      containers: { merge: 'name', shape: container },
      volumes: { merge: 'name', shape: createShape({}) },
      tolerations: {},
    }),
  },
  status: { shape: createShape({ conditions: { merge: 'type' } }) },
})

const merge = (document: unknown, patch: unknown) =>
  applyStrategicMerge(document as JsonObject, patch as JsonValue, pod)

describe('applyStrategicMerge of objects', () => {
  it.each([
    ['an empty patch changes nothing', { a: { b: 1 } }, {}, { a: { b: 1 } }],
    ['a value is replaced and other fields are kept', { a: 1, b: 2 }, { b: 3, c: 4 }, { a: 1, b: 3, c: 4 }],
    ['maps are merged', { a: { x: 1, y: 2 } }, { a: { y: 3 } }, { a: { x: 1, y: 3 } }],
    ['null removes a field', { a: 1, b: { c: 1, d: 1 } }, { a: null, b: { c: null } }, { b: { d: 1 } }],
    ['null for an absent field changes nothing', {}, { a: null, b: { c: null, d: { e: null } } }, { b: { d: {} } }],
    ['a map can replace a value', { a: 1 }, { a: { b: 2, c: null } }, { a: { b: 2 } }],
    ['a value can replace a map', { a: { b: 1 } }, { a: 2 }, { a: 2 }],
    ['unknown lists are replaced', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['$patch replace replaces a map', { a: { x: 1 } }, { a: { $patch: 'replace', y: 2 } }, { a: { y: 2 } }],
    ['$patch replace adds an absent field', {}, { a: { $patch: 'replace', y: 2 } }, { a: { y: 2 } }],
    ['$patch replace replaces the document', { a: 1 }, { $patch: 'replace', b: { c: null, d: 1 } }, { b: { d: 1 } }],
    ['$patch delete empties a map', { a: { x: 1 }, b: 1 }, { a: { $patch: 'delete', x: 2 } }, { a: {}, b: 1 }],
    ['$patch delete ignores an absent field', {}, { a: { $patch: 'delete' } }, {}],
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

  it('treats inherited names as ordinary keys', () => {
    const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    expect(JSON.stringify(merge({}, patch))).toBe(JSON.stringify(patch))
    expect({}).not.toHaveProperty('polluted')
    expect(JSON.stringify(merge(patch, JSON.parse('{"__proto__":null,"constructor":null}')))).toBe('{}')
  })
})

describe('applyStrategicMerge of lists by key', () => {
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
      'an item keeps its position',
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
      'an item is removed and an item with the same name is added',
      {
        containers: [
          { $patch: 'delete', name: 'web' },
          { name: 'web', image: 'web:3' },
        ],
      },
      { containers: [{ name: 'web', image: 'web:3' }, log] },
    ],
    [
      '$patch replace replaces all items',
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
      'a new list contains no directives',
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
      'a replaced list contains no directives',
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
  ])('%s', (_, patch, changedFields) => {
    expect(merge({ spec }, { spec: patch })).toEqual({ spec: { ...spec, ...(changedFields as object) } })
  })

  it('merges items with numeric keys', () => {
    const document = { spec: { containers: [{ name: 'web', ports: [{ containerPort: 80, name: 'http' }] }] } }
    const patchedPod = merge(document, {
      spec: { containers: [{ name: 'web', ports: [{ containerPort: 80, protocol: 'TCP' }, { containerPort: 443 }] }] },
    })
    expect(patchedPod).toEqual({
      spec: {
        containers: [
          { name: 'web', ports: [{ containerPort: 80, name: 'http', protocol: 'TCP' }, { containerPort: 443 }] },
        ],
      },
    })
  })
})

describe('applyStrategicMerge of patches by kubectl and controllers', () => {
  const lastAppliedAnnotation = { 'kubectl.kubernetes.io/last-applied-configuration': '{}\n' }

  it('removes a container, a label and an environment variable, and keeps an injected sidecar (kubectl apply)', () => {
    const liveObject = {
      metadata: { labels: { app: 'web', old: 'yes' }, annotations: lastAppliedAnnotation },
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
          { name: 'legacy', image: 'legacy:1' },
          { name: 'injected', image: 'sidecar:1' },
        ],
      },
    }
    const patch = {
      metadata: { annotations: lastAppliedAnnotation, labels: { old: null } },
      spec: {
        '$setElementOrder/containers': [{ name: 'web' }],
        containers: [
          {
            '$setElementOrder/env': [{ name: 'B' }],
            env: [{ $patch: 'delete', name: 'A' }],
            image: 'web:2',
            name: 'web',
          },
          { $patch: 'delete', name: 'legacy' },
        ],
      },
    }
    expect(merge(liveObject, patch)).toEqual({
      metadata: { labels: { app: 'web' }, annotations: lastAppliedAnnotation },
      spec: {
        containers: [
          { name: 'web', image: 'web:2', env: [{ name: 'B', value: '2' }] },
          { name: 'injected', image: 'sidecar:1' },
        ],
      },
    })
  })

  it('changes the type of a volume (kubectl edit)', () => {
    const liveObject = {
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
    expect(merge(liveObject, patch)).toEqual({
      spec: {
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    })
  })

  it("removes a provisioner's finalizer", () => {
    const liveObject = {
      metadata: { finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'] },
    }
    const patch = {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['external-provisioner.volume.kubernetes.io/finalizer'],
        '$setElementOrder/finalizers': ['kubernetes.io/pv-protection'],
      },
    }
    expect(merge(liveObject, patch)).toEqual({ metadata: { finalizers: ['kubernetes.io/pv-protection'] } })
  })

  it('adds a finalizer and keeps one that is missing from $setElementOrder', () => {
    const patch = { metadata: { finalizers: ['added'], '$setElementOrder/finalizers': ['listed', 'added'] } }
    expect(merge({ metadata: { finalizers: ['listed', 'unlisted'] } }, patch)).toEqual({
      metadata: { finalizers: ['listed', 'added', 'unlisted'] },
    })
    expect(merge({ metadata: {} }, patch)).toEqual({ metadata: { finalizers: ['added'] } })
  })

  it('sets one condition and removes another', () => {
    const liveObject = {
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
    expect(merge(liveObject, patch)).toEqual({
      status: {
        conditions: [
          { type: 'FileSystemResizePending', status: 'True' },
          { type: 'Other', status: 'True' },
        ],
      },
    })
  })

  it('merges owner references by uid', () => {
    const liveObject = { metadata: { ownerReferences: [{ uid: '1', name: 'a' }] } }
    const patch = {
      metadata: {
        ownerReferences: [
          { uid: '2', name: 'b' },
          { uid: '1', controller: true },
        ],
      },
    }
    expect(merge(liveObject, patch)).toEqual({
      metadata: {
        ownerReferences: [
          { uid: '2', name: 'b' },
          { uid: '1', name: 'a', controller: true },
        ],
      },
    })
  })
})

describe('SYS-10 applyStrategicMerge rejects', () => {
  const liveObject = {
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
      'a nested new item without its key',
      { spec: { containers: [{ name: 'x', env: [{ value: '1' }] }] } },
      'spec.containers[name="x"].env has an item without its merge key "name"',
    ],
    [
      'a deleted item without its key',
      { spec: { containers: [{ $patch: 'delete' }] } },
      'without its merge key "name"',
    ],
    ['a key that is an object', { spec: { containers: [{ name: {} }] } }, 'merge key "name" is not a scalar'],
    [
      'a scalar in a list of objects',
      { spec: { containers: ['web'] } },
      'spec.containers is merged by key, so its items must be objects',
    ],
    ['an object in a list of scalars', { metadata: { finalizers: [{}] } }, 'metadata.finalizers is a list of scalars'],
    [
      '$setElementOrder that is not a list',
      { spec: { '$setElementOrder/containers': {} } },
      'spec.containers has a $setElementOrder that is not a list',
    ],
    [
      '$setElementOrder without the name of a list',
      { spec: { $setElementOrder: [] } },
      'spec has "$setElementOrder", which must have the form $setElementOrder/<list>',
    ],
    [
      '$setElementOrder without the merge key',
      { spec: { '$setElementOrder/containers': [{}] } },
      'spec.containers has an item without its merge key "name"',
    ],
    [
      'an item that is not in $setElementOrder',
      { spec: { containers: [{ name: 'web' }], '$setElementOrder/containers': [{ name: 'log' }] } },
      'spec.containers has "web" in the patch, but not at the same position in its $setElementOrder',
    ],
    [
      'items in another order than $setElementOrder',
      { metadata: { finalizers: ['b', 'a'], '$setElementOrder/finalizers': ['a', 'b'] } },
      'metadata.finalizers has "a" in the patch, but not at the same position in its $setElementOrder',
    ],
    [
      '$deleteFromPrimitiveList that is not a list',
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
  ])('%s', (_, patch, message) => {
    expect(() => merge(liveObject, patch)).toThrow(message)
  })
})

describe('applyStrategicMerge (properties)', () => {
  it('is idempotent, removes all directives and does not modify its input', () => {
    fc.assert(
      fc.property(anyDocument, anyPatch, (document, patch) => {
        const original = JSON.stringify([document, patch])
        const mergedPod = merge(document, patch)
        expect(JSON.stringify([document, patch])).toBe(original)
        expect(JSON.stringify(mergedPod)).not.toMatch(/\$|null/)
        expect(merge(mergedPod, patch)).toEqual(mergedPod)
      }),
      { numRuns: 500 },
    )
  })

  it('returns the document if the patch is empty', () => {
    fc.assert(fc.property(anyDocument, (document) => jsonEquals(merge(document, {}), document as JsonObject)))
  })

  it('returns every container of the patch once, with its image', () => {
    fc.assert(
      fc.property(anyDocument, anyContainers, (document, containers) => {
        const result = merge(document, { spec: { containers } }) as { spec: { containers: { name: string }[] } }
        for (const container of containers) {
          const matches = result.spec.containers.filter(({ name }) => name === container.name)
          expect(matches).toHaveLength(1)
          expect(matches[0]).toMatchObject({ image: container.image })
        }
      }),
    )
  })
})

const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'))
const namedItems = <T extends object>(fields: fc.Arbitrary<T>) =>
  names.chain((selectedNames) =>
    fc.tuple(...selectedNames.map((name) => fields.map((otherFields) => ({ name, ...otherFields })))),
  )
const anyEnv = namedItems(fc.record({ value: fc.constantFrom('1', '2') }))
const anyContainers = namedItems(
  fc.record({ image: fc.constantFrom('x', 'y'), env: anyEnv }, { requiredKeys: ['image'] }),
)
const anyDocument = fc.record(
  {
    metadata: fc.record(
      {
        labels: fc.dictionary(fc.constantFrom('k', 'l'), fc.string({ unit: fc.constantFrom('v') })),
        finalizers: names,
      },
      { requiredKeys: [] },
    ),
    spec: fc.record({ containers: anyContainers, tolerations: anyEnv }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
)
const envPatch = namedItems(
  fc.oneof(fc.record({ value: fc.constantFrom('3', null) }), fc.constant({ $patch: 'delete' })),
)
const containersPatch = namedItems(
  fc.oneof(
    fc.record({ image: fc.constantFrom('z', null), env: envPatch, $patch: fc.constant('merge') }, { requiredKeys: [] }),
    fc.constant({ $patch: 'delete' }),
  ),
)
const anyPatch = fc
  .record({
    added: names,
    deleted: names,
    containers: containersPatch,
    labels: fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('w', null)),
  })
  .map(({ added: addedNames, deleted: deletedNames, containers, labels }) => ({
    metadata: {
      labels,
      finalizers: addedNames,
      '$deleteFromPrimitiveList/finalizers': deletedNames,
      '$setElementOrder/finalizers': [
        ...addedNames,
        ...deletedNames.filter((finalizer) => !addedNames.includes(finalizer)),
      ],
    },
    spec: { containers, '$setElementOrder/containers': containers.map(({ name }) => ({ name })) },
  }))
