export { createProtectionControllers, type ProtectionOptions } from './protection-controller.ts'
