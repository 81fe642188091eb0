// A disk for the store that can be slow, refuse, or lose what was never synced. What it acknowledged survives any
// crash of the process above it; what was under way when that died is there wholly or not at all, as the random say.
import { AppendRefusedError, type Medium, type MediumBatch, memoryMedium } from '../../store/index.ts'
import type { World } from './world.ts'

export interface DiskFaults {
  /** Probability that a write is refused, leaving nothing. */
  refuse: number
  latencyMs: number
}

export interface SimDisk {
  /** The medium for one incarnation of the store; mounting again cuts off the one before, like a new machine taking over. */
  mount(): Medium
  readonly faults: DiskFaults
  /** Decides the fate of writes under way; call when the process above dies. */
  powerCut(): void
}

export function createDisk(world: World, name: string): SimDisk {
  const random = world.random(`disk ${name}`)
  const kept = memoryMedium()
  const faults: DiskFaults = { refuse: 0, latencyMs: 2 }
  let mounted = 0
  let underWay: { batch: MediumBatch; mount: number }[] = []

  return {
    faults,
    powerCut() {
      mounted++
      // Only a prefix can have reached the disk: batches are written in order.
      for (const { batch } of underWay) {
        if (random() < 0.5) break
        void kept.write(batch)
      }
      underWay = []
    },
    mount() {
      const mount = ++mounted
      underWay = []
      return {
        scan: (visit) => kept.scan(visit),
        read: (position) => kept.read(position),
        bytesOnDisk: () => kept.bytesOnDisk(),
        close: async () => {},
        write: (batch) =>
          new Promise((resolve, reject) => {
            const entry = { batch, mount }
            underWay.push(entry)
            world.schedule(faults.latencyMs * random(), () => {
              if (mount !== mounted) return // cut off: nobody hears of it
              underWay = underWay.filter((other) => other !== entry)
              if (random() < faults.refuse) {
                world.tally('disk refused')
                return reject(new AppendRefusedError('the disk refused the write'))
              }
              kept.write(batch).then(resolve, reject)
            })
          }),
      }
    },
  }
}
