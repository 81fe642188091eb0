export { createEphemeralController, type EphemeralController, type EphemeralOptions } from './ephemeral-controller.ts'
