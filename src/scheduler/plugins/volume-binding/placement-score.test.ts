import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Placement } from '../../../volumes/placement.ts'
import { SCORE_MAX } from '../../framework/plugin.ts'
import { type NodeStorage, scorePlacement } from './placement-score.ts'

const storage = fc
  .record({ freeBytes: fc.bigInt({ min: 0n, max: 50n }), usedBytes: fc.bigInt({ min: 0n, max: 50n }) })
  .map(({ freeBytes, usedBytes }): NodeStorage => ({ freeBytes, totalBytes: freeBytes + usedBytes }))
const storages = fc.array(storage, { minLength: 1, maxLength: 30 })
const keepsShare = ({ freeBytes, totalBytes }: NodeStorage, percent: number) =>
  Number(freeBytes) * 100 >= Number(totalBytes) * percent

/** Returns the nodes with the highest score. */
function bestNodes(placement: Placement, nodes: readonly NodeStorage[]): NodeStorage[] {
  const scores = scorePlacement(placement, nodes)
  return nodes.filter((_, index) => scores[index] === Math.max(...scores))
}

describe('the score of a placement policy', () => {
  it('PLUS-18 is highest for the most free space with spread, and for the least with pack', () => {
    fc.assert(
      fc.property(storages, (nodes) => {
        const free = nodes.map(({ freeBytes }) => freeBytes).sort((a, b) => Number(a - b))
        for (const node of bestNodes({ policy: 'spread' }, nodes)) expect(node.freeBytes).toBe(free.at(-1))
        for (const node of bestNodes({ policy: 'pack' }, nodes)) expect(node.freeBytes).toBe(free[0])
      }),
    )
  })

  it('PLUS-18 with headroom is highest for the fullest node that keeps the share free, or else for the emptiest', () => {
    fc.assert(
      fc.property(storages, fc.integer({ min: 1, max: 99 }), (nodes, percent) => {
        const roomy = nodes.filter((node) => keepsShare(node, percent))
        const candidates = (roomy.length > 0 ? roomy : nodes).map(({ freeBytes }) => freeBytes)
        const expected = candidates.reduce((a, b) => ((roomy.length > 0 ? a < b : a > b) ? a : b))
        for (const node of bestNodes({ policy: 'headroom', freePercent: percent }, nodes))
          expect(node.freeBytes).toBe(expected)
      }),
    )
  })

  it('PLUS-18 is between 0 and the maximum, equal for equal nodes, and 0 for a node without storage', () => {
    fc.assert(
      fc.property(
        storages,
        fc.constantFrom<Placement>({ policy: 'spread' }, { policy: 'pack' }),
        (nodes, placement) => {
          const scores = scorePlacement(placement, [...nodes, ...nodes, undefined])
          expect(scores.slice(0, nodes.length)).toEqual(scores.slice(nodes.length, -1))
          expect(scores.at(-1)).toBe(0)
          expect(Math.max(...scores)).toBe(SCORE_MAX)
          expect(Math.min(...scores)).toBe(0)
        },
      ),
    )
  })
})
