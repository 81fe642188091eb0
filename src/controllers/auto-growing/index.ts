// Public API of automatic growth.
export { createAutoGrowingController } from './auto-growing.ts'
