// Entry point of the controller of generic ephemeral volumes, which creates their claims.

export { claimFromTemplate } from './claim-from-template.ts'
export { createEphemeralController, type EphemeralController } from './ephemeral-controller.ts'
export { createEphemeralMetrics } from './metrics.ts'
