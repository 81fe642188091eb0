// The public names of ephemeral: claims of generic ephemeral volumes.
export {
  createEphemeralController,
  createEphemeralMetrics,
  type EphemeralController,
  type EphemeralMetrics,
  type EphemeralOptions,
} from './ephemeral-controller.ts'
