// Entry point of the controller of generic ephemeral volumes, which creates their claims.
export { createEphemeralController, type EphemeralController } from './ephemeral-controller.ts'
export { createEphemeralMetrics } from './metrics.ts'
