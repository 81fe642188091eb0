// Entry point of the garbage collector, which deletes dependents of deleted owners.
export { createGarbageController, type GarbageOptions } from './garbage-controller.ts'
