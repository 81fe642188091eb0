// Gauges of desired, current and obsolete capacity objects, with the metric names of external-provisioner.
import { Gauge, type Registry } from 'prom-client'

interface CapacityCounts {
  /** Number of objects that should exist. */
  readonly goal: number
  /** Number of these objects that exist. */
  readonly current: number
  /** Number of objects that exist and will be deleted. */
  readonly obsolete: number
}

interface ObservedProducer {
  readonly driverName: string
  /** Absent for a cluster-wide producer. */
  readonly node?: string
  counts(): CapacityCounts
}

/** One per process, shared by its producers. */
export interface CapacityMetrics {
  /** The producers whose counts are read when metrics are scraped. */
  readonly producers: Set<ObservedProducer>
}

export function createCapacityMetrics(registry: Registry): CapacityMetrics {
  const producers = new Set<ObservedProducer>()
  const addGauge = (suffix: string, help: string, value: (counts: CapacityCounts) => number) =>
    new Gauge({
      name: `csistoragecapacities_${suffix}`,
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
  addGauge('desired_goal', 'CSIStorageCapacity objects that should exist.', ({ goal }) => goal)
  addGauge('desired_current', 'Desired CSIStorageCapacity objects that exist.', ({ current }) => current)
  addGauge('obsolete', 'CSIStorageCapacity objects that exist and will be deleted.', ({ obsolete }) => obsolete)
  return { producers }
}
