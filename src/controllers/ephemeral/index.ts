// Entry point of the controller of generic ephemeral volumes, which creates their claims.
export {
  createEphemeralController,
  createEphemeralMetrics,
  type EphemeralController,
  type EphemeralMetrics,
  type EphemeralOptions,
} from './ephemeral-controller.ts'
