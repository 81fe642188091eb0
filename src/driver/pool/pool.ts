// Accounts for the space of the pool. A reserved volume uses its size, a thin one its size divided by the overcommit ratio of
// its class, so the available space depends on the class.
//   pool 10Gi, a reserved volume of 4Gi:  6Gi available for reserved, 12Gi for thin with overcommit 2
// Check and allocation are synchronous, so that concurrent requests cannot allocate the same space.
import { formatSize, insufficientSpace, outOfRange } from '../errors.ts'

export interface SpacePolicy {
  readonly provisioning: 'reserved' | 'thin'
  readonly overcommit: number
}

interface SpaceRequest extends SpacePolicy {
  readonly capacityBytes: number
}

/** The policy for content whose space is allocated when data is written. */
export const ON_DEMAND: SpacePolicy = { provisioning: 'thin', overcommit: 1 }

interface AvailableSpace {
  readonly availableBytes: number
  /** The largest volume that can be created now. */
  readonly maximumBytes: number
}

export interface Pool {
  readonly directory: string
  readonly sizeBytes: number
  /**
   * Space that all volumes and snapshots count for: the size of reserved ones, the size divided by the overcommit ratio of
   * thin ones.
   */
  readonly promisedBytes: number
  /** Free space of the file system that contains the pool. */
  freeBytes(): Promise<number>
  readAvailable(policy: SpacePolicy): Promise<AvailableSpace>
  /** Throws OUT_OF_RANGE if the pool is too small, RESOURCE_EXHAUSTED if it does not have enough space now. */
  allocate(id: string, request: SpaceRequest): Promise<void>
  /** Records existing content, whether it fits or not. */
  record(id: string, request: SpaceRequest): void
  release(id: string): void
}

export interface PoolOptions {
  readonly directory: string
  readonly sizeBytes: number
  freeBytes(): Promise<number>
  /** Whether creating a reserved volume allocates its space, so that the file system must have it now. */
  readonly allocatesOnCreate: boolean
}

/** Space that is kept free for records, directories and metadata of the file system. */
export const MINIMUM_FREE_BYTES = 64 * 1_048_576

export function createPool({ directory, sizeBytes, freeBytes, allocatesOnCreate }: PoolOptions): Pool {
  const promisedBytesById = new Map<string, number>()
  let promisedBytes = 0

  const record = (id: string, { capacityBytes, overcommit }: SpaceRequest) => {
    const bytes = Math.ceil(capacityBytes / overcommit)
    promisedBytes += bytes - (promisedBytesById.get(id) ?? 0)
    promisedBytesById.set(id, bytes)
  }
  /**
   * Returns the largest capacity that a volume of this policy may have. `ownBytes` is the space that the pool already counts for
   * this volume.
   */
  const computeAvailable = ({ provisioning, overcommit }: SpacePolicy, usableBytes: number, ownBytes = 0): number => {
    const capacityLeftBytes = Math.floor((sizeBytes - promisedBytes + ownBytes) * overcommit)
    if (usableBytes <= 0) return Math.min(Math.floor(ownBytes * overcommit), capacityLeftBytes) // the disk is full
    return allocatesOnCreate && provisioning === 'reserved'
      ? Math.min(capacityLeftBytes, usableBytes + ownBytes)
      : capacityLeftBytes
  }
  /** Reads the free space without the minimum that is kept free. */
  const readUsableBytes = async () => (await freeBytes()) - MINIMUM_FREE_BYTES

  return {
    directory,
    sizeBytes,
    get promisedBytes() {
      return promisedBytes
    },
    freeBytes,
    async readAvailable(policy) {
      const availableBytes = Math.max(0, computeAvailable(policy, await readUsableBytes()))
      return { availableBytes: availableBytes, maximumBytes: availableBytes }
    },
    async allocate(id, request) {
      const wholePoolBytes = Math.floor(sizeBytes * request.overcommit)
      if (request.capacityBytes > wholePoolBytes) {
        throw outOfRange(
          `${formatSize(request.capacityBytes)} is more than the whole pool ${directory} can hold, which is ${formatSize(wholePoolBytes)}. Request less, or enlarge the pool.`,
        )
      }
      const usableBytes = await readUsableBytes()
      const availableBytes = computeAvailable(request, usableBytes, promisedBytesById.get(id) ?? 0)
      if (request.capacityBytes > availableBytes) {
        throw insufficientSpace({
          requestedBytes: request.capacityBytes,
          availableBytes: availableBytes,
          pool: directory,
        })
      }
      record(id, request)
    },
    record,
    release(id) {
      promisedBytes -= promisedBytesById.get(id) ?? 0
      promisedBytesById.delete(id)
    },
  }
}
