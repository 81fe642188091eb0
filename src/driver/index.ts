export { type DriverOptions, type RunningDriver, startDriver } from './driver.ts'
export { DRIVER_NAME } from './identity-service.ts'
