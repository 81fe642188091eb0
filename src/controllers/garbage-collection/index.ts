export { createGarbageController, type GarbageOptions } from './garbage-controller.ts'
