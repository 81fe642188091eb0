// A disk under the store that can be slow, reject writes, or lose unsynced writes. Acknowledged writes survive every
// crash; of the writes in progress at a crash a random prefix survives, each write completely or not at all.
import { AppendRejectedError, type Medium, type MediumBatch, memoryMedium } from '../../store/index.ts'
import type { Simulation } from './simulation.ts'

interface DiskFaults {
  /** Probability that a write is rejected without an effect. */
  refuse: number
  latencyMs: number
}

export interface SimDisk {
  /** Returns the medium for one incarnation of the store; a new mount disconnects the previous one. */
  mount(): Medium
  readonly faults: DiskFaults
  /** Decides which writes in progress survive; call when the process crashes. */
  powerCut(): void
}

export function createDisk(simulation: Simulation, name: string): SimDisk {
  const random = simulation.random(`disk ${name}`)
  const medium = memoryMedium()
  const faults: DiskFaults = { refuse: 0, latencyMs: 2 }
  let currentMount = 0
  let pendingWrites: { batch: MediumBatch; mount: number }[] = []

  return {
    faults,
    powerCut() {
      currentMount++
      // Only a prefix can have reached the disk: batches are written in order.
      for (const { batch } of pendingWrites) {
        if (random() < 0.5) break
        void medium.write(batch)
      }
      pendingWrites = []
    },
    mount() {
      const mount = ++currentMount
      pendingWrites = []
      return {
        scan: (visit) => medium.scan(visit),
        read: (position) => medium.read(position),
        bytesOnDisk: () => medium.bytesOnDisk(),
        close: async () => {},
        write: (batch) =>
          new Promise((resolve, reject) => {
            const pendingWrite = { batch, mount }
            pendingWrites.push(pendingWrite)
            simulation.schedule(faults.latencyMs * random(), () => {
              if (mount !== currentMount) return // disconnected: no caller receives the result
              pendingWrites = pendingWrites.filter((other) => other !== pendingWrite)
              if (random() < faults.refuse) {
                simulation.tally('disk refused')
                return reject(new AppendRejectedError('the disk refused the write'))
              }
              medium.write(batch).then(resolve, reject)
            })
          }),
      }
    },
  }
}
