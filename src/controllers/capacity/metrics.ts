// Gauges of desired, current and obsolete capacity objects, under the names of external-provisioner.
import { Gauge, type Registry } from 'prom-client'

export interface CapacityCounts {
  /** Objects that should exist. */
  readonly goal: number
  /** Those of them that exist. */
  readonly current: number
  /** Objects that exist and will be deleted. */
  readonly obsolete: number
}

export interface CountedProducer {
  readonly driverName: string
  /** Absent for a cluster-wide producer. */
  readonly node?: string
  counts(): CapacityCounts
}

/** One per process, shared by its producers. */
export interface CapacityMetrics {
  /** Read when metrics are scraped. */
  readonly producers: Set<CountedProducer>
}

export function createCapacityMetrics(registry: Registry): CapacityMetrics {
  const producers = new Set<CountedProducer>()
  const gauge = (what: string, help: string, value: (counts: CapacityCounts) => number) =>
    new Gauge({
      name: `csistoragecapacities_${what}`,
      help,
      labelNames: ['driver_name', 'node'],
      registers: [registry],
      collect() {
        this.reset() // omits stopped producers
        for (const { driverName, node, counts } of producers) {
          this.set({ driver_name: driverName, ...(node === undefined ? {} : { node }) }, value(counts()))
        }
      },
    })
  gauge('desired_goal', 'CSIStorageCapacity objects that should exist.', ({ goal }) => goal)
  gauge('desired_current', 'CSIStorageCapacity objects that exist and should.', ({ current }) => current)
  gauge('obsolete', 'CSIStorageCapacity objects that exist and will be deleted.', ({ obsolete }) => obsolete)
  return { producers }
}
