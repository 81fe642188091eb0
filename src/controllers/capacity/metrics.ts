// How many capacity objects there should be, are, and should not be, under the names that operators already chart.
import { Gauge, type Registry } from 'prom-client'

export interface CapacityCounts {
  /** Objects that should exist. */
  readonly goal: number
  /** Those of them that do. */
  readonly current: number
  /** Objects that exist and will be deleted. */
  readonly obsolete: number
}

export interface CountedProducer {
  readonly driverName: string
  /** Absent for the producer of a whole cluster. */
  readonly node?: string
  counts(): CapacityCounts
}

/** One for the process, however many producers it runs. */
export interface CapacityMetrics {
  /** The gauges ask these when they are read. */
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
        this.reset() // a producer that has stopped counts nothing
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
