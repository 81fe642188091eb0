export { createProtectionControllers } from './protection-controller.ts'
