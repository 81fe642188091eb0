import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { NodeInfo } from '../../cluster/node-info.ts'
import { UsedStorage } from './used-storage.ts'

const aNode = (zone: string): NodeInfo => {
  const node = new NodeInfo(zone)
  node.setNode({ metadata: { name: zone, labels: { zone } } })
  return node
}
const aVolume = (name: string, driver: string, zone: string, bytes: number): PersistentVolume => ({
  metadata: { name },
  spec: {
    capacity: { storage: String(bytes) },
    csi: { driver, volumeHandle: name },
    ...(zone && {
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
      },
    }),
  },
})
const change = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd'),
  driver: fc.constantFrom('one', 'two'),
  zone: fc.constantFrom('x', 'y', ''),
  bytes: fc.nat(1_000),
  isRemoval: fc.boolean(),
})

it('PLUS-18 UsedStorage sums the sizes of the volumes that a node can reach, per driver, after any changes', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const volumes = new Map<string, PersistentVolume>()
      const used = new UsedStorage(() => volumes.values())
      const nodes = [aNode('x'), aNode('y')]
      for (const { name, driver, zone, bytes, isRemoval } of changes) {
        if (isRemoval) {
          volumes.delete(name)
          used.remove(name)
        } else {
          volumes.set(name, aVolume(name, driver, zone, bytes))
          used.put(volumes.get(name)!)
        }
        for (const node of nodes) {
          const reachable = [...volumes.values()].filter(({ spec }) => {
            const zones = spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values
            return spec?.csi?.driver === 'one' && (zones === undefined || zones.includes(node.name))
          })
          const expected = reachable.reduce((sum, { spec }) => sum + BigInt(spec?.capacity?.storage ?? '0'), 0n)
          expect(used.bytesOn(node, 'one')).toBe(expected)
        }
      }
    }),
  )
})

it('PLUS-18 UsedStorage evaluates volumes again when the labels of a node change, and after many groups became empty', () => {
  const volumes = [aVolume('a', 'one', 'x', 10)]
  const used = new UsedStorage(() => volumes)
  const node = aNode('x')
  expect(used.bytesOn(node, 'one')).toBe(10n)
  node.setNode({ metadata: { name: 'x', labels: { zone: 'y' } } })
  expect(used.bytesOn(node, 'one')).toBe(0n)
  for (let index = 0; index < 1_500; index++) {
    used.put(aVolume(`v${index}`, 'one', `zone-${index}`, 1))
    used.remove(`v${index}`)
  }
  expect(used.bytesOn(aNode('x'), 'one')).toBe(10n)
})
