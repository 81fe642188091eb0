// Public exports of the CSI package: client, server, errors, metrics and secret masks. Message types are in gen/csi_pb.js.
export { type ConnectOptions, type CsiConnection, connectDriver, withoutMessage } from './connect.ts'
export {
  type CsiDriver,
  callDriver,
  createCsiDriver,
  createServiceClients,
  type ServiceHandlers,
} from './driver.ts'
export {
  ConnectionError,
  CSI_CODES,
  type CsiCode,
  CsiError,
  type CsiFailureCode,
  classifyCreateFailure,
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
} from './facts.ts'
export { type CallObserver, createCsiMetrics, createCsiPluginMetrics } from './metrics.ts'
export { waitUntilReady } from './ready.ts'
export { recordCalls, VOLUME_CHANGES } from './record-calls.ts'
export { findSecrets, redact } from './redact.ts'
export { createSecretMask, type SecretMask } from './secret-mask.ts'
export { serializeCalls, subjectOf } from './serialize-calls.ts'
export { type ServedDriver, serveDriver } from './serve.ts'
export type { CallOptions, Transport } from './transport.ts'
