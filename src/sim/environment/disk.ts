// A disk under the store that can be slow, refuse writes, or lose unsynced writes. Acknowledged writes survive every
// crash; of the writes in progress at a crash a random prefix survives, each write completely or not at all.
import { AppendRefusedError, type Medium, type MediumBatch, memoryMedium } from '../../store/index.ts'
import type { Simulation } from './simulation.ts'

export interface DiskFaults {
  /** Probability that a write is refused without an effect. */
  refuse: number
  latencyMs: number
}

export interface SimDisk {
  /** The medium for one incarnation of the store; a new mount disconnects the previous one. */
  mount(): Medium
  readonly faults: DiskFaults
  /** Decides which writes in progress survive; call when the process crashes. */
  powerCut(): void
}

export function createDisk(simulation: Simulation, name: string): SimDisk {
  const random = simulation.random(`disk ${name}`)
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
            simulation.schedule(faults.latencyMs * random(), () => {
              if (mount !== mounted) return // disconnected: no one receives the result
              underWay = underWay.filter((other) => other !== entry)
              if (random() < faults.refuse) {
                simulation.tally('disk refused')
                return reject(new AppendRefusedError('the disk refused the write'))
              }
              kept.write(batch).then(resolve, reject)
            })
          }),
      }
    },
  }
}
