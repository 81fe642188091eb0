// Public exports of the console.
export type { ConsoleServerOptions } from './console-server.ts'
export type { BulkRuns, Insight } from './data/insight.ts'
export { type ConsoleListener, listenConsole } from './listener.ts'
export type {
  BulkClaim,
  BulkRequest,
  BulkRun,
  BulkState,
  DfResponse,
  RecordedRun,
  SimulateRequest,
} from './protocol.ts'
