export { canMonitorHealth, createVolumeHealth, type VolumeHealthOptions } from './volume-health.ts'
