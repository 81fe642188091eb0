// Public exports of the local CSI driver.
export { type RunningDriver, startDriver } from './driver.ts'
export { DRIVER_NAME, TOPOLOGY_KEY } from './names.ts'
