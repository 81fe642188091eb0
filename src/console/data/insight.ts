// The interface to the CLI's analyses of a cluster. The CLI implements it with the functions of its commands, so that the console
// and the commands return the same results.
import type {
  BulkRequest,
  BulkResponse,
  BulkRun,
  DfGrouping,
  DfResponse,
  Diagnosis,
  DoctorResponse,
  LeaksResponse,
  RetryRequest,
  RetryResponse,
  SimulateRequest,
  SimulationResult,
  TimelineResponse,
} from '../protocol.ts'

export interface InsightTarget {
  /** In the form that commands accept: `pvc`, `pod`, `pv`, `node`. */
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly uid?: string
}

/** All functions reject with an ApiError or UsageError. */
export interface Insight {
  diagnose(target: InsightTarget, signal: AbortSignal): Promise<Diagnosis>
  readTimeline(target: InsightTarget, signal: AbortSignal): Promise<TimelineResponse>
  readSpace(by: 'claim' | DfGrouping, signal: AbortSignal): Promise<DfResponse>
  simulate(request: SimulateRequest, signal: AbortSignal): Promise<SimulationResult>
  examine(driver: string | undefined, signal: AbortSignal): Promise<DoctorResponse>
  /** Rejects if the driver has no socket on this machine. */
  findLeaks(driver: string, signal: AbortSignal): Promise<LeaksResponse>
  retry(request: RetryRequest, signal: AbortSignal): Promise<RetryResponse>
  readonly bulk: BulkRuns
  close(): void
}

/** Runs of grow and migrate in this process. */
export interface BulkRuns {
  list(signal: AbortSignal): Promise<BulkResponse>
  /** Returns the report of a dry run. */
  preview(request: BulkRequest, signal: AbortSignal): Promise<object>
  start(request: BulkRequest): BulkRun
  /** Starts no further claims. Claims that were already started continue in the cluster. */
  pause(id: string): BulkRun
  resume(id: string): BulkRun
  /** Starts a run that reverts the changes of this run. */
  undo(id: string): BulkRun
}
