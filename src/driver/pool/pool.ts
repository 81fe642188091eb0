// Accounts for the space of the pool. A reserved volume counts with its size; a thin one with its size divided by the
// overcommit ratio of its class, so classes see different available space in one pool.
//   pool 10Gi, a reserved volume of 4Gi:  6Gi available for reserved, 12Gi for thin with overcommit 2
// Check and allocation are synchronous, so two creates can never both get the last byte.
import { insufficientSpace, outOfRange, sizeText } from '../errors.ts'

export interface SpacePolicy {
  readonly provisioning: 'reserved' | 'thin'
  readonly overcommit: number
}

export interface SpaceRequest extends SpacePolicy {
  readonly capacityBytes: number
}

/** Space is allocated when data is written. */
export const ON_DEMAND: SpacePolicy = { provisioning: 'thin', overcommit: 1 }

export interface AvailableSpace {
  readonly availableBytes: number
  /** The largest volume that can be created now. */
  readonly maximumBytes: number
}

export interface Pool {
  readonly directory: string
  readonly sizeBytes: number
  /** Sum over all volumes and snapshots. */
  readonly promisedBytes: number
  /** Free space of the file system that contains the pool. */
  freeBytes(): Promise<number>
  available(share: SpacePolicy): Promise<AvailableSpace>
  /** Throws OUT_OF_RANGE if the pool is too small, RESOURCE_EXHAUSTED if it does not have enough space now. */
  allocate(id: string, wanted: SpaceRequest): Promise<void>
  /** Records existing content, whether it fits or not. */
  record(id: string, held: SpaceRequest): void
  release(id: string): void
}

export interface PoolOptions {
  readonly directory: string
  readonly sizeBytes: number
  freeBytes(): Promise<number>
  /** Whether creating a reserved volume allocates its space, so that the file system must have it now. */
  readonly allocatesOnCreate: boolean
}

/** Kept free for records, directories and metadata of the file system. */
export const MINIMUM_FREE_BYTES = 64 * 1_048_576

export function createPool({ directory, sizeBytes, freeBytes, allocatesOnCreate }: PoolOptions): Pool {
  const weights = new Map<string, number>()
  let promisedBytes = 0

  const record = (id: string, { capacityBytes, overcommit }: SpaceRequest) => {
    const weight = Math.ceil(capacityBytes / overcommit)
    promisedBytes += weight - (weights.get(id) ?? 0)
    weights.set(id, weight)
  }
  /** `ownBytes`: the space that the volume already has. */
  const leftBytes = ({ provisioning, overcommit }: SpacePolicy, physicalBytes: number, ownBytes = 0): number => {
    const unpromised = Math.floor((sizeBytes - promisedBytes + ownBytes) * overcommit)
    if (physicalBytes <= 0) return Math.min(ownBytes, unpromised) // the disk is full
    return allocatesOnCreate && provisioning === 'reserved'
      ? Math.min(unpromised, physicalBytes + ownBytes)
      : unpromised
  }
  const physicalBytes = async () => (await freeBytes()) - MINIMUM_FREE_BYTES

  return {
    directory,
    sizeBytes,
    get promisedBytes() {
      return promisedBytes
    },
    freeBytes,
    async available(share) {
      const left = Math.max(0, leftBytes(share, await physicalBytes()))
      return { availableBytes: left, maximumBytes: left }
    },
    async allocate(id, wanted) {
      const largestEver = Math.floor(sizeBytes * wanted.overcommit)
      if (wanted.capacityBytes > largestEver) {
        throw outOfRange(
          `${sizeText(wanted.capacityBytes)} are more than the whole pool ${directory} can hold, which is ${sizeText(largestEver)}. Request less, or enlarge the pool.`,
        )
      }
      const physical = await physicalBytes()
      const left = leftBytes(wanted, physical, weights.get(id) ?? 0)
      if (wanted.capacityBytes > left) {
        throw insufficientSpace({ wantedBytes: wanted.capacityBytes, availableBytes: left, pool: directory })
      }
      record(id, wanted)
    },
    record,
    release(id) {
      promisedBytes -= weights.get(id) ?? 0
      weights.delete(id)
    },
  }
}
