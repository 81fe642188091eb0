// Public exports of storage capacity tracking: the producer of CSIStorageCapacity objects, and the cleaner that deletes
// orphaned objects.
export { createCapacityControllers } from './capacity-controllers.ts'
export { type CapacityCleanerDeps, createCapacityCleaner } from './cleaner.ts'
export { DRIVER_NAME_LABEL, MANAGED_BY_LABEL, managedBy, parseManagedBy } from './managed-by.ts'
export { type CapacityMetrics, createCapacityMetrics } from './metrics.ts'
export { type CapacityMode, type CapacityOptions, parseEnableCapacity } from './options.ts'
