// Public exports of the generic ephemeral volume controller, which creates the claims of these volumes.

export { claimFromTemplate } from './claim-from-template.ts'
export { createEphemeralController, type EphemeralController } from './ephemeral-controller.ts'
export { createEphemeralMetrics } from './metrics.ts'
