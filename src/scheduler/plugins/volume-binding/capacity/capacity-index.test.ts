import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { labelSelectorFromObject, matchesLabels } from '../../../../api/selectors.ts'
import { CapacityIndex } from './capacity-index.ts'

const aCapacity = (name: string, fields: Partial<CSIStorageCapacity>): CSIStorageCapacity => ({
  metadata: { namespace: 'default', name },
  storageClassName: 'fast',
  capacity: '1Gi',
  ...fields,
})
const findNames = (index: CapacityIndex, className: string, labels: Record<string, string>) =>
  index
    .find(className, labels)
    .map(({ key }) => key.slice('default/'.length))
    .sort()

describe('the capacity index', () => {
  it('CAP-1 finds a report with an empty topology for every node and a report without topology for none', () => {
    const index = new CapacityIndex()
    index.put(aCapacity('no-nodes', {}))
    index.put(aCapacity('all-nodes', { nodeTopology: {} }))
    expect(findNames(index, 'fast', { zone: 'a' })).toEqual(['all-nodes'])
    expect(findNames(index, 'fast', {})).toEqual(['all-nodes'])
  })

  it('CAP-11 finds a report only for its class and the nodes of its topology', () => {
    const index = new CapacityIndex()
    index.put(aCapacity('fast-a', { nodeTopology: { matchLabels: { zone: 'a' } } }))
    index.put(aCapacity('fast-b', { nodeTopology: { matchLabels: { zone: 'b' } } }))
    index.put(aCapacity('slow-a', { nodeTopology: { matchLabels: { zone: 'a' } }, storageClassName: 'slow' }))
    expect(findNames(index, 'fast', { zone: 'a', hostname: 'n1' })).toEqual(['fast-a'])
    expect(findNames(index, 'fast', {})).toEqual([])
  })

  it('CAP-11 limits volumes by maximumVolumeSize if it is set, otherwise by the capacity', () => {
    const index = new CapacityIndex()
    const limitOf = (fields: Partial<CSIStorageCapacity>) => index.put(aCapacity('x', fields)).current.limitBytes
    expect(limitOf({ capacity: '10', maximumVolumeSize: '3' })).toBe(3n)
    expect(limitOf({ capacity: '10' })).toBe(10n)
    expect(limitOf({ capacity: undefined })).toBe(undefined)
    expect(limitOf({ capacity: '10', maximumVolumeSize: 'invalid' })).toBe(undefined)
  })

  it('CAP-11 finds the same reports as matching every selector, after any sequence of changes', () => {
    const key = fc.constantFrom('zone', 'rack', 'host')
    const value = fc.constantFrom('a', 'b', 'c')
    const expression = fc.oneof(
      fc.record({
        key,
        operator: fc.constantFrom('In', 'NotIn'),
        values: fc.array(value, { minLength: 1, maxLength: 2 }),
      }),
      fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
    )
    const topology = fc.option(
      fc.record({ matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(expression, { maxLength: 2 }) }),
      { nil: undefined },
    )
    const step = fc.record({
      name: fc.constantFrom('o1', 'o2', 'o3', 'o4'),
      isRemoved: fc.boolean(),
      className: fc.constantFrom('fast', 'slow'),
      topology,
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20, size: 'max' }), fc.dictionary(key, value), (steps, labels) => {
        const index = new CapacityIndex()
        const objects = new Map<string, CSIStorageCapacity>()
        for (const { name, isRemoved, className, topology: nodeTopology } of steps) {
          if (isRemoved) {
            index.remove(`default/${name}`)
            objects.delete(name)
          } else {
            const object = aCapacity(name, {
              nodeTopology: nodeTopology as CSIStorageCapacity['nodeTopology'],
              storageClassName: className,
            })
            index.put(object)
            objects.set(name, object)
          }
        }
        expect(index.size).toBe(objects.size)
        for (const className of ['fast', 'slow']) {
          const expectedObjects = [...objects.values()].filter(
            (object) =>
              object.storageClassName === className &&
              matchesLabels(labelSelectorFromObject(object.nodeTopology), labels),
          )
          expect(findNames(index, className, labels)).toEqual(
            expectedObjects.map(({ metadata }) => metadata.name).sort(),
          )
        }
      }),
    )
  })
})
