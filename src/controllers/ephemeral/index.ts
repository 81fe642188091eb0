// The door of ephemeral volumes.
export {
  createEphemeralController,
  createEphemeralMetrics,
  type EphemeralController,
  type EphemeralMetrics,
  type EphemeralOptions,
} from './ephemeral-controller.ts'
