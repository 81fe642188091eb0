import { array, assert, asyncProperty, constantFrom, integer, record } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CsiError } from '../../csi/errors.ts'
import { AS_WRITTEN, createPool, type Share } from './pool.ts'

const GIB = 1_073_741_824
const RESERVED: Share = { provisioning: 'reserved', overcommit: 1 }
const thin = (overcommit: number): Share => ({ provisioning: 'thin', overcommit })

const aPool = ({ sizeBytes = 10 * GIB, freeBytes = 100 * GIB, takesSpaceAtOnce = true } = {}) =>
  createPool({ directory: '/pool', sizeBytes, freeBytes: async () => freeBytes, takesSpaceAtOnce })

describe('the pool', () => {
  it('PROV-19 shows each class the room that is left for it', async () => {
    const pool = aPool()
    await pool.take('a', { ...RESERVED, capacityBytes: 4 * GIB })
    expect(await pool.room(RESERVED)).toEqual({ availableBytes: 6 * GIB, maximumBytes: 6 * GIB })
    expect((await pool.room(thin(2))).availableBytes).toBe(12 * GIB)
    await pool.take('b', { ...thin(2), capacityBytes: 8 * GIB })
    expect((await pool.room(RESERVED)).availableBytes).toBe(2 * GIB)
    pool.release('a')
    expect((await pool.room(RESERVED)).availableBytes).toBe(6 * GIB)
    pool.release('a')
    expect(pool.promisedBytes).toBe(4 * GIB)
  })

  it('PROV-19 a reserved volume also needs its space on the disk now; a thin one only a disk that is not full', async () => {
    const pool = aPool({ freeBytes: GIB })
    expect((await pool.room(RESERVED)).availableBytes).toBe(GIB - 64 * 1_048_576)
    expect((await pool.room(thin(1))).availableBytes).toBe(10 * GIB)
    expect((await aPool({ freeBytes: 1_048_576 }).room(thin(4))).availableBytes).toBe(0)
    expect((await aPool({ freeBytes: GIB, takesSpaceAtOnce: false }).room(RESERVED)).availableBytes).toBe(10 * GIB)
  })

  it('REX-1 growing needs room only for what is added', async () => {
    const pool = aPool()
    await pool.take('a', { ...RESERVED, capacityBytes: 6 * GIB })
    await pool.take('a', { ...RESERVED, capacityBytes: 10 * GIB })
    expect((await pool.room(RESERVED)).availableBytes).toBe(0)
  })

  it('PROV-19 says what can never fit and what does not fit now', async () => {
    const pool = aPool()
    await expect(pool.take('a', { ...RESERVED, capacityBytes: 11 * GIB })).rejects.toMatchObject({
      codeName: 'OUT_OF_RANGE',
    })
    await pool.take('a', { ...RESERVED, capacityBytes: 9 * GIB })
    await expect(pool.take('b', { ...AS_WRITTEN, capacityBytes: 2 * GIB })).rejects.toMatchObject({
      codeName: 'RESOURCE_EXHAUSTED',
      message:
        '2Gi do not fit into the pool /pool: 1Gi are available. Delete volumes or snapshots, or enlarge the pool.',
    })
  })

  it('PROV-19 whatever is asked for at once, no more is promised than there is', async () => {
    const wish = record({
      id: constantFrom('a', 'b', 'c', 'd', 'e'),
      capacityBytes: integer({ min: 1, max: 12 * GIB }),
      share: constantFrom(RESERVED, thin(1), thin(1.5), thin(3)),
    })
    await assert(
      asyncProperty(array(wish, { maxLength: 20 }), async (wishes) => {
        const pool = aPool()
        const take = ({ id, share, capacityBytes }: (typeof wishes)[number]) =>
          pool.take(id, { ...share, capacityBytes }).catch((error) => expect(error).toBeInstanceOf(CsiError))
        await Promise.all(wishes.map(take))
        expect(pool.promisedBytes).toBeLessThanOrEqual(pool.sizeBytes)
      }),
    )
  })
})
