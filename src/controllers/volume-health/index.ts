export { createVolumeHealthMetrics, type VolumeHealthMetrics } from './metrics.ts'
export { canMonitorHealth, createVolumeHealth, type VolumeHealthOptions } from './volume-health.ts'
