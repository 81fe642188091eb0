// Public exports of the garbage collector, which deletes dependents of deleted owners.
export { createGarbageController } from './garbage-controller.ts'
