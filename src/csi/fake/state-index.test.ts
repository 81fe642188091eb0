import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyState, type FakeState, type FakeVolume } from './state.ts'
import { addVolume, findVolumeByName, removeVolume, resizeVolume, usedBytesOf } from './state-index.ts'

const aVolume = (order: number, name: string, pool: string, capacityBytes: number): FakeVolume => ({
  id: `vol-${order}`,
  name,
  order,
  pool,
  copies: 2,
  capacityBytes,
  createRequest: { capabilities: [], parameters: {}, mutableParameters: {}, source: undefined },
  mutableParameters: {},
  attachments: {},
  onNodes: {},
})

/** Computes the used bytes without the index. */
const countUsedBytes = ({ volumes }: FakeState, pool: string) =>
  Object.values(volumes).reduce(
    (sum, volume) => (volume.pool === pool ? sum + volume.capacityBytes * volume.copies : sum),
    0,
  )

describe('the state index', () => {
  it('equals a full scan, even if volumes are added to the state directly', () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'add directly', 'remove', 'resize'),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      pool: fc.constantFrom('one', 'two'),
      bytes: fc.integer({ min: 1, max: 100 }),
    })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const state = emptyState()
        for (const { do: operation, name, pool, bytes } of steps) {
          const existingVolume = findVolumeByName(state, name)
          expect(existingVolume).toBe(Object.values(state.volumes).find((volume) => volume.name === name))
          if (!existingVolume && operation === 'add') addVolume(state, aVolume(state.sequence + 1, name, pool, bytes))
          if (!existingVolume && operation === 'add directly') {
            const volume = aVolume(++state.sequence, name, pool, bytes)
            state.volumes[volume.id] = volume
          }
          if (existingVolume && operation === 'remove') removeVolume(state, existingVolume)
          if (existingVolume && operation === 'resize') resizeVolume(state, existingVolume, bytes)
          for (const poolName of ['one', 'two'])
            expect(usedBytesOf(state, poolName)).toBe(countUsedBytes(state, poolName))
        }
      }),
    )
  })
})
