import { array, assert, asyncProperty, constantFrom, integer, record } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CsiError } from '../../csi/errors.ts'
import { createPool, ON_DEMAND, type SpacePolicy } from './pool.ts'

const GIB = 1_073_741_824
const RESERVED: SpacePolicy = { provisioning: 'reserved', overcommit: 1 }
const thin = (overcommit: number): SpacePolicy => ({ provisioning: 'thin', overcommit })

const aPool = ({ sizeBytes = 10 * GIB, freeBytes = 100 * GIB, allocatesOnCreate = true } = {}) =>
  createPool({ directory: '/pool', sizeBytes, freeBytes: async () => freeBytes, allocatesOnCreate })

describe('createPool', () => {
  it('reports the available space for each class', async () => {
    const pool = aPool()
    await pool.allocate('a', { ...RESERVED, capacityBytes: 4 * GIB })
    expect(await pool.readAvailable(RESERVED)).toEqual({ availableBytes: 6 * GIB, maximumBytes: 6 * GIB })
    expect((await pool.readAvailable(thin(2))).availableBytes).toBe(12 * GIB)
    await pool.allocate('b', { ...thin(2), capacityBytes: 8 * GIB })
    expect((await pool.readAvailable(RESERVED)).availableBytes).toBe(2 * GIB)
    pool.release('a')
    expect((await pool.readAvailable(RESERVED)).availableBytes).toBe(6 * GIB)
    pool.release('a')
    expect(pool.promisedBytes).toBe(4 * GIB)
  })

  it('limits reserved volumes to the free disk space, and thin ones only if the disk is full', async () => {
    const pool = aPool({ freeBytes: GIB })
    expect((await pool.readAvailable(RESERVED)).availableBytes).toBe(GIB - 64 * 1_048_576)
    expect((await pool.readAvailable(thin(1))).availableBytes).toBe(10 * GIB)
    expect((await aPool({ freeBytes: 1_048_576 }).readAvailable(thin(4))).availableBytes).toBe(0)
    expect((await aPool({ freeBytes: GIB, allocatesOnCreate: false }).readAvailable(RESERVED)).availableBytes).toBe(
      10 * GIB,
    )
  })

  it('allocates only the additional space of a growing volume', async () => {
    const pool = aPool()
    await pool.allocate('a', { ...RESERVED, capacityBytes: 6 * GIB })
    await pool.allocate('a', { ...RESERVED, capacityBytes: 10 * GIB })
    expect((await pool.readAvailable(RESERVED)).availableBytes).toBe(0)
  })

  it('allows no growth while the disk is full, and reports the capacity that the volume has', async () => {
    let freeBytes = 100 * GIB
    const pool = createPool({
      directory: '/pool',
      sizeBytes: 10 * GIB,
      freeBytes: async () => freeBytes,
      allocatesOnCreate: true,
    })
    await pool.allocate('a', { ...thin(2), capacityBytes: 8 * GIB })
    freeBytes = 0
    await expect(pool.allocate('a', { ...thin(2), capacityBytes: 9 * GIB })).rejects.toMatchObject({
      codeName: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('only 8Gi available'),
    })
    await pool.allocate('a', { ...thin(2), capacityBytes: 8 * GIB })
    expect(pool.promisedBytes).toBe(4 * GIB)
  })

  it('returns different errors for requests that never fit and requests that do not fit now', async () => {
    const pool = aPool()
    await expect(pool.allocate('a', { ...RESERVED, capacityBytes: 11 * GIB })).rejects.toMatchObject({
      codeName: 'OUT_OF_RANGE',
    })
    await pool.allocate('a', { ...RESERVED, capacityBytes: 9 * GIB })
    await expect(pool.allocate('b', { ...ON_DEMAND, capacityBytes: 2 * GIB })).rejects.toMatchObject({
      codeName: 'RESOURCE_EXHAUSTED',
      message:
        '2Gi does not fit into the pool /pool: only 1Gi available. Delete volumes or snapshots, or enlarge the pool.',
    })
  })

  it('never allocates more than its size for concurrent requests', async () => {
    const request = record({
      id: constantFrom('a', 'b', 'c', 'd', 'e'),
      capacityBytes: integer({ min: 1, max: 12 * GIB }),
      policy: constantFrom(RESERVED, thin(1), thin(1.5), thin(3)),
    })
    await assert(
      asyncProperty(array(request, { maxLength: 20 }), async (requests) => {
        const pool = aPool()
        const allocate = ({ id, policy, capacityBytes }: (typeof requests)[number]) =>
          pool.allocate(id, { ...policy, capacityBytes }).catch((error) => expect(error).toBeInstanceOf(CsiError))
        await Promise.all(requests.map(allocate))
        expect(pool.promisedBytes).toBeLessThanOrEqual(pool.sizeBytes)
      }),
    )
  })
})
