// Public exports of the protection controllers, which delay the deletion of claims, volumes and attributes classes in use.
export { protectsClaim } from './protected-by.ts'
export { createProtectionControllers } from './protection-controller.ts'
