// Public API of the CSI package: client, server and errors. Message types are in gen/csi_pb.js.
export { type ConnectOptions, type CsiConnection, connectDriver } from './connect.ts'
export {
  type CallOptions,
  type CsiDriver,
  createCsiDriver,
  type ServiceClient,
  type ServiceHandlers,
  type Transport,
} from './driver.ts'
export {
  type CreateFailure,
  CSI_CODES,
  type CsiCode,
  CsiError,
  type CsiFailureCode,
  classifyCreateFailure,
  codeNameOf,
  goNameOf,
  isInfeasibleExpand,
  isInfeasibleModify,
  isUncertain,
  isUnimplemented,
} from './errors.ts'
export {
  type ControllerCapability,
  type DriverFacts,
  type NodeCapability,
  type PluginService,
  readDriverFacts,
  type VolumeExpansion,
} from './facts.ts'
export { type InstrumentOptions, instrument } from './instrument.ts'
export { type CallObserver, createCsiMetrics, createCsiPluginMetrics } from './metrics.ts'
export { type ReadyOptions, waitUntilReady } from './ready.ts'
export { redact, redactLazily, redactText } from './redact.ts'
export { redactCredentials } from './redact-credentials.ts'
export { serializeCalls } from './serialize-calls.ts'
export { type ServedDriver, type ServeOptions, serveDriver } from './serve.ts'
