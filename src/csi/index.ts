// CSI: how drivers are spoken to, what their failures mean, and how one is served. The messages are in gen/csi_pb.js.
export { type ConnectOptions, type CsiConnection, connectDriver } from './connect.ts'
export { type Callee, type Caller, type CallOptions, type Carry, type CsiDriver, driverOver } from './driver.ts'
export {
  type CreateFailure,
  CSI_CODES,
  type CsiCode,
  CsiError,
  type CsiFailureCode,
  codeNameOf,
  goNameOf,
  isInfeasibleExpand,
  isInfeasibleModify,
  isUncertain,
  isUncertainCode,
  isUnimplemented,
  meaningOfCreateFailure,
} from './errors.ts'
export {
  type ControllerCapability,
  type DriverFacts,
  driverFacts,
  type NodeCapability,
  type PluginService,
  type VolumeExpansion,
} from './facts.ts'
export { type MeasuredOptions, measured } from './measured.ts'
export { type CallObserver, createCsiMetrics, createCsiPluginMetrics } from './metrics.ts'
export { oneAtATime } from './one-at-a-time.ts'
export { type ReadyOptions, whenReady } from './ready.ts'
export { redact, redacted, withoutSecrets } from './redact.ts'
export { redactCredentials } from './redact-credentials.ts'
export { type ServedDriver, type ServeOptions, serveDriver } from './serve.ts'
