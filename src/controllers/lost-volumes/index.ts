// Public exports of the controller of lost volumes.
export { createLostVolumesController } from './lost-volumes.ts'
export { VOLUME_LOST } from './plan-lost-volume.ts'
