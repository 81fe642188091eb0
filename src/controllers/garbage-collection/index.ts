// The public names of garbage-collection.
export { createGarbageController, type GarbageOptions } from './garbage-controller.ts'
