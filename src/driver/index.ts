// The public interface of the local CSI driver, which runs as a separate process (`stowage driver`).
export { type DriverOptions, type RunningDriver, startDriver } from './driver.ts'
export { DRIVER_NAME, TOPOLOGY_KEY } from './identity-service.ts'
