// Public exports of the auto-growing controller.
export { createAutoGrowingController } from './auto-growing.ts'
