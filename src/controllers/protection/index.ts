// The public names of protection.
export { createProtectionControllers } from './protection-controller.ts'
