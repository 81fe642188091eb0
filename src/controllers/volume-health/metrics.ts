// Counts the abnormal volumes of each driver in a gauge.
import { Gauge, type Registry } from 'prom-client'

interface ObservedMonitor {
  readonly driverName: string
  abnormalVolumes(): number
}

/** One per process, shared by its monitors. */
export interface VolumeHealthMetrics {
  /** The monitors whose counts are read when metrics are scraped. */
  readonly monitors: Set<ObservedMonitor>
}

export function createVolumeHealthMetrics(registry: Registry): VolumeHealthMetrics {
  const monitors = new Set<ObservedMonitor>()
  new Gauge({
    name: 'stowage_abnormal_volumes',
    help: 'Bound volumes whose last condition, as the driver reported it, is abnormal.',
    labelNames: ['driver_name'],
    registers: [registry],
    collect() {
      this.reset() // omits stopped monitors
      for (const { driverName, abnormalVolumes } of monitors) this.set({ driver_name: driverName }, abnormalVolumes())
    },
  })
  return { monitors }
}
