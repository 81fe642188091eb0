import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyState, type FakeState, type FakeVolume } from './state.ts'
import { addVolume, removeVolume, resizeVolume, usedBytesOf, volumeByName } from './state-index.ts'

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
const counted = ({ volumes }: FakeState, pool: string) =>
  Object.values(volumes).reduce((sum, one) => (one.pool === pool ? sum + one.capacityBytes * one.copies : sum), 0)

describe('the state index', () => {
  it('PROV-11 matches a full scan, also for volumes added directly', () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'add directly', 'remove', 'resize'),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      pool: fc.constantFrom('one', 'two'),
      bytes: fc.integer({ min: 1, max: 100 }),
    })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const state = emptyState()
        for (const { do: what, name, pool, bytes } of steps) {
          const there = volumeByName(state, name)
          expect(there).toBe(Object.values(state.volumes).find((one) => one.name === name))
          if (!there && what === 'add') addVolume(state, aVolume(state.sequence + 1, name, pool, bytes))
          if (!there && what === 'add directly') {
            const volume = aVolume(++state.sequence, name, pool, bytes)
            state.volumes[volume.id] = volume
          }
          if (there && what === 'remove') removeVolume(state, there)
          if (there && what === 'resize') resizeVolume(state, there, bytes)
          for (const one of ['one', 'two']) expect(usedBytesOf(state, one)).toBe(counted(state, one))
        }
      }),
    )
  })
})
