// Public exports of the health monitor, which reports the condition of volumes as events.
export { createVolumeHealthMetrics, type VolumeHealthMetrics } from './metrics.ts'
export { canMonitorHealth, createVolumeHealth, type VolumeHealthOptions } from './volume-health.ts'
