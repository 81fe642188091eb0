// How much of the pool is promised and how much is left. A reserved volume weighs what it promises; a thin one weighs
// its promise divided by the class's overcommit ratio, so two classes over one pool see different room in it.
//   pool 10Gi, a reserved volume of 4Gi:  6Gi left for reserved, 12Gi for thin with overcommit 2
// Weights are in memory and decided in one turn: two creates can never both get the last byte.
import { noRoom, outOfRange, sizeText } from '../errors.ts'

export interface Share {
  readonly provisioning: 'reserved' | 'thin'
  readonly overcommit: number
}

export interface Weighed extends Share {
  readonly capacityBytes: number
}

/** Takes what it takes as it is written. */
export const AS_WRITTEN: Share = { provisioning: 'thin', overcommit: 1 }

export interface Room {
  readonly availableBytes: number
  /** The largest single volume that would be made now. */
  readonly maximumBytes: number
}

export interface Pool {
  readonly directory: string
  readonly sizeBytes: number
  /** What volumes and snapshots weigh together. */
  readonly promisedBytes: number
  /** What the file system under the pool can still give. */
  freeBytes(): Promise<number>
  room(share: Share): Promise<Room>
  /** Takes the room, or refuses: OUT_OF_RANGE if it never could be, RESOURCE_EXHAUSTED if it is not there now. */
  take(id: string, wanted: Weighed): Promise<void>
  /** Notes what is there already, whether it fits or not. */
  note(id: string, held: Weighed): void
  release(id: string): void
}

export interface PoolOptions {
  readonly directory: string
  readonly sizeBytes: number
  freeBytes(): Promise<number>
  /** Whether volumes take their space when they are made: then the file system must have it now. */
  readonly takesSpaceAtOnce: boolean
}

/** Records, directories and the file system's own bookkeeping need room too: volumes never get the last of it. */
export const KEPT_FREE_BYTES = 64 * 1_048_576

export function createPool({ directory, sizeBytes, freeBytes, takesSpaceAtOnce }: PoolOptions): Pool {
  const weights = new Map<string, number>()
  let promisedBytes = 0

  const note = (id: string, { capacityBytes, overcommit }: Weighed) => {
    const weight = Math.ceil(capacityBytes / overcommit)
    promisedBytes += weight - (weights.get(id) ?? 0)
    weights.set(id, weight)
  }
  /** `ownBytes`: what the one that asks holds already, and keeps or grows. */
  const leftBytes = ({ provisioning, overcommit }: Share, physicalBytes: number, ownBytes = 0): number => {
    const unpromised = Math.floor((sizeBytes - promisedBytes + ownBytes) * overcommit)
    if (physicalBytes <= 0) return Math.min(ownBytes, unpromised) // the disk is full, whatever was promised
    return takesSpaceAtOnce && provisioning === 'reserved' ? Math.min(unpromised, physicalBytes + ownBytes) : unpromised
  }
  const physicalBytes = async () => (await freeBytes()) - KEPT_FREE_BYTES

  return {
    directory,
    sizeBytes,
    get promisedBytes() {
      return promisedBytes
    },
    freeBytes,
    async room(share) {
      const left = Math.max(0, leftBytes(share, await physicalBytes()))
      return { availableBytes: left, maximumBytes: left }
    },
    async take(id, wanted) {
      const largestEver = Math.floor(sizeBytes * wanted.overcommit)
      if (wanted.capacityBytes > largestEver) {
        throw outOfRange(
          `${sizeText(wanted.capacityBytes)} are more than the whole pool ${directory} can ever hold, which is ${sizeText(largestEver)}. Ask for less, or enlarge the pool.`,
        )
      }
      const physical = await physicalBytes()
      const left = leftBytes(wanted, physical, weights.get(id) ?? 0)
      if (wanted.capacityBytes > left) {
        throw noRoom({ wantedBytes: wanted.capacityBytes, availableBytes: left, pool: directory })
      }
      note(id, wanted)
    },
    note,
    release(id) {
      promisedBytes -= weights.get(id) ?? 0
      weights.delete(id)
    },
  }
}
