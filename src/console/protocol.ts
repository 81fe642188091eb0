// The messages between the console's server and its page. Types only, so that the page can import them. Errors of every route
// are a Kubernetes Status (`api/status-error.ts`), whose message the page shows unchanged.
import type { Timeline, TimelineKind } from '../api/kinds/timeline/timeline-schema.ts'
import type { Status } from '../api/status-error.ts'
import type { Diagnosis, DiagnosisState } from '../diagnosis/diagnosis.ts'
import type { SimulationResult } from '../diagnosis/simulation/result.ts'

export type { Diagnosis, DiagnosisState, SimulationResult, Status }

// POST /session with SessionRequest sets the cookie and returns SessionResponse. DELETE /session ends the session. All routes
// below return 401 with the reason SessionRequired without a session; a 401 of the API server has the reason Unauthorized.
// /k8s/PATH forwards GET, POST, PUT, PATCH and DELETE to the API server.

export interface SessionRequest {
  /** The token in the fragment of the printed URL. */
  readonly token: string
}

export interface SessionResponse {
  /** The time at which the session ends, in the format of RFC 3339. */
  readonly expiresAt: string
}

// GET /watch is a WebSocket that carries all watches of a tab as JSON text frames.

export type WatchCommand =
  | {
      readonly op: 'watch'
      /** Chosen by the page, unique among the watches of the socket. */
      readonly id: number
      /** The path of a collection with its query, such as `/api/v1/persistentvolumeclaims?labelSelector=app%3Dshop`. */
      readonly path: string
      /** The revision of the last message that the page has applied. The server resumes after it if it can. */
      readonly rev?: string
    }
  | { readonly op: 'unwatch'; readonly id: number }

/** An object as the API server sends it, without managedFields or the last-applied annotation. */
export interface ConsoleObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

export type WatchMessage =
  /** The objects of the watch are sent again: discard the previous ones. The page may keep showing them until SYNCED. */
  | { readonly id: number; readonly type: 'RESET' }
  /** At most 500 objects of the list. */
  | { readonly id: number; readonly type: 'ITEMS'; readonly objects: readonly ConsoleObject[] }
  /** Everything up to this revision was sent. Also sent without changes, when the revision has advanced. */
  | { readonly id: number; readonly type: 'SYNCED'; readonly rev: string }
  /** Changes, coalesced by object. All changes up to the revision `rev` have been sent. */
  | {
      readonly id: number
      readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
      readonly objects: readonly ConsoleObject[]
      readonly rev: string
    }
  /**
   * The collection cannot be listed or watched. With retryAfterMs (503, 429 and others) the console tries again by itself, and
   * then sends changes and SYNCED without a RESET. Without it (400, 403, 404, 413 and, for too many watches, 429) the error is
   * final until the page sends `watch` again. When the session ends, the socket is closed with the code 4401 and cannot be opened
   * again without a new session.
   */
  | {
      readonly id: number
      readonly type: 'ERROR'
      readonly code: number
      readonly reason: string
      readonly message: string
      readonly retryAfterMs?: number
    }

// GET /data/info

export interface Feature {
  readonly available: boolean
  /** Why the feature is not available. */
  readonly reason?: string
}

export interface ConsoleInfo {
  readonly server: {
    readonly url: string
    /** Absent if the server does not report it. */
    readonly version?: string
    readonly isStowage: boolean
    /** Set if the server cannot be reached or rejects the credentials; all features are then unavailable. */
    readonly problem?: string
  }
  /** The user as the API server names it. Absent if the server does not report it. */
  readonly user?: string
  readonly groups?: readonly string[]
  /** The namespace of the kubeconfig's context. */
  readonly namespace: string
  readonly consoleVersion: string
  /** The kubeconfig file whose credentials the console uses, for printed commands. Absent in a pod. */
  readonly kubeconfig?: string
  readonly context?: string
  readonly features: {
    /** Operations of the group stowage.dev. */
    readonly operations: Feature
    /** Timelines from the journal. Without it they are reconstructed from events and managed fields. */
    readonly journal: Feature
    /** Histograms and counters at /metrics of the API server. */
    readonly metrics: Feature
    /** Used bytes and IO of mounted volumes. */
    readonly nodeStats: Feature
    /** Runs of grow and migrate. */
    readonly bulk: Feature
  }
}

/** The response of why, timeline and leaks to a valid request without a result. */
export interface Problem {
  /** Why there is no result, for example because the object was deleted or the driver has no socket on the console's machine. */
  readonly problem: string
}

// GET /data/why?kind=pvc|pod|pv|node&namespace=&name= returns the Diagnosis of `stowage why -o json`.
// GET /data/why-lines

export interface WhyLine {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly state: DiagnosisState
  /** Reason and message of the deepest cause without siblings. */
  readonly reason: string
  readonly message: string
}

export interface WhyLines {
  /** A line for each claim that was found not to be ready, at most 2,000. */
  readonly lines: readonly WhyLine[]
  /** The number of claims that were not diagnosed, because there are already 2,000 lines. They may not be ready. */
  readonly omitted: number
  /** The lists that could not be read, as rules: `list events in all namespaces`. */
  readonly missingRules: readonly string[]
}

// GET /data/timeline?kind=pvc|pv&namespace=&name=[&uid=] returns the timeline of `stowage timeline -o json`.

export interface TimelineResponse {
  readonly kind: TimelineKind
  readonly namespace?: string
  readonly name: string
  readonly uid?: string
  /** `objects` if it is reconstructed from events, conditions and managed fields of existing objects. */
  readonly source: 'journal' | 'objects'
  readonly notes: readonly string[]
  readonly otherUids: readonly string[]
  readonly steps: NonNullable<Timeline['steps']>
  readonly entries: NonNullable<Timeline['entries']>
}

// GET /data/df[?by=claim|class|node|pool|namespace] returns the report of `stowage df -A -o json`.

interface MeasuredUsage {
  readonly usedBytes?: number
  readonly freeBytes?: number
  readonly inodes?: number
  readonly inodesUsed?: number
  /** Operations and bytes per second, reads and writes together. */
  readonly iops?: number
  readonly throughputBytes?: number
  readonly growthBytesPerDay?: number
}

/** A claim. Unknown amounts are absent. */
export interface DfClaim extends MeasuredUsage {
  readonly namespace?: string
  readonly claim?: string
  readonly volume?: string
  readonly class?: string
  readonly driver?: string
  readonly node?: string
  /** The topology segment of the pool. */
  readonly pool?: string
  readonly requestBytes?: number
  readonly capacityBytes?: number
  readonly iopsLimit?: number
  readonly throughputLimitBytes?: number
  /** Why the usage is not known. */
  readonly unknownReason?: string
}

/** A class, node, pool or namespace. Sums over the known amounts. */
export interface DfGroup extends MeasuredUsage {
  readonly name?: string
  readonly driver?: string
  readonly volumes: number
  readonly measuredVolumes: number
  readonly requestBytes?: number
  readonly capacityBytes?: number
  readonly availableBytes?: number
  readonly quota?: { readonly usedBytes: number; readonly hardBytes: number }
}

export type DfGrouping = 'class' | 'node' | 'pool' | 'namespace'

export type DfResponse =
  | { readonly by: 'claim'; readonly items: readonly DfClaim[]; readonly missingRules: readonly string[] }
  | { readonly by: DfGrouping; readonly items: readonly DfGroup[]; readonly missingRules: readonly string[] }

// POST /data/simulate returns the SimulationResult of `stowage simulate -o json`.

export type SimulateRequest =
  /** YAML or JSON documents: pods, claims and workloads. */
  | { readonly manifests: string; readonly namespace?: string }
  /** "What would fit": pods with one new claim each. */
  | {
      readonly className: string
      /** A quantity, such as `10Gi`. */
      readonly size: string
      readonly count: number
      readonly namespace?: string
    }

// GET /data/leaks?driver= returns the report of `stowage leaks -o json` for a driver with a socket on the machine of the console.

export interface LeaksResponse {
  readonly leaks: readonly {
    readonly reason: string
    readonly handle?: string
    readonly object?: string
    readonly path?: string
    readonly sizeBytes?: number
    readonly message: string
    readonly leftBecause?: string
  }[]
  /** What could not be determined, and why. */
  readonly unknown: readonly string[]
}

// GET /data/doctor[?driver=] returns the report of `stowage doctor -o json`.

export type FindingStatus = 'ok' | 'warning' | 'error' | 'unknown'

export interface DoctorResponse {
  readonly server: string
  readonly version?: string
  readonly driver?: string
  readonly checks: readonly {
    readonly id: string
    readonly title: string
    readonly findings: readonly {
      readonly status: FindingStatus
      readonly object?: string
      readonly message: string
      readonly remedy?: string
    }[]
  }[]
  readonly counts: Readonly<Record<FindingStatus, number>>
}

// GET /data/history

export type HistorySource = 'claims' | 'operations' | 'metrics'

/** Latency and number of the observations since the previous sample. Null if there were none. */
export interface StepLatency {
  readonly count: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

export interface CsiCallSample {
  readonly driver: string
  readonly method: string
  /** gRPC code, such as `OK` or `ResourceExhausted`. */
  readonly code: string
  readonly perSecond: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

/** Fields of a source that is not available are null. */
export interface HistorySample {
  /** RFC 3339. */
  readonly time: string
  readonly claims: Readonly<Record<string, number>> | null
  readonly operations: Readonly<Record<string, number>> | null
  /** Volumes provisioned and claims bound per second since the previous sample. */
  readonly provisionedPerSecond: number | null
  readonly boundPerSecond: number | null
  /** By step: Scheduled, Provisioned, Bound, Attached, Published. */
  readonly steps: Readonly<Record<string, StepLatency>> | null
  readonly csiCalls: readonly CsiCallSample[] | null
}

export interface HistoryResponse {
  readonly intervalMs: number
  /** Oldest first, at most 360. */
  readonly samples: readonly HistorySample[]
  readonly sources: Readonly<Record<HistorySource, Feature>>
}

// POST /data/access

export interface AccessCheck {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

export interface AccessRequest {
  /** At most 100. */
  readonly checks: readonly AccessCheck[]
}

export interface AccessResponse {
  /** One for each check. */
  readonly allowed: readonly boolean[]
}

// POST /data/retry

export interface RetryRequest {
  /** As `stowage retry` accepts it: pvc, pv, pod, node, va and others. */
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly dryRun?: boolean
}

export interface RetryResponse {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly requestedAt: string
  readonly isDryRun: boolean
  /** Operations of the object. Absent if the server does not list them. */
  readonly operations?: readonly object[]
}

// Runs of grow and migrate. Options have the names and formats of the flags of the commands, and their defaults.
// GET  /data/bulk                                       returns BulkResponse
// POST /data/bulk/preview                BulkRequest →  the report of the command with --dry-run -o json
// POST /data/bulk/start                  BulkRequest →  BulkRun
// POST /data/bulk/pause, resume, undo    BulkAction  →  BulkRun

export type BulkRequest =
  | {
      readonly kind: 'grow'
      readonly namespace: string
      /** Names of claims, or a selector. */
      readonly names?: readonly string[]
      readonly selector?: string
      /** Either `to` or `by`. */
      readonly to?: string
      readonly by?: string
      readonly parallel?: number
      readonly interval?: string
      readonly timeout?: string
      readonly maxFailures?: number
    }
  | {
      readonly kind: 'migrate'
      /** Absent for all namespaces. */
      readonly namespace?: string
      readonly selector?: string
      /** Empty for claims without a class. */
      readonly from: string
      readonly to: string
      readonly rate?: string
      readonly parallel?: number
      readonly timeout?: string
      readonly maxFailures?: number
    }

export interface BulkAction {
  readonly id: string
}

/** `paused` after a pause or too many failures; `failed` after another error. */
export type BulkState = 'running' | 'paused' | 'done' | 'failed'

/** A run of this console. */
export interface BulkRun {
  readonly id: string
  readonly request: BulkRequest
  /** Whether the run reverts the changes of another run. */
  readonly isUndo: boolean
  readonly state: BulkState
  /** The error with which the run ended. */
  readonly message?: string
  readonly startedAt: string
  readonly finishedAt?: string
  /** Undefined until the claims are selected. */
  readonly total?: number
  readonly counts: Readonly<Record<'done' | 'unchanged' | 'failed' | 'unfinished', number>>
  /** The claims in progress and those that have failed, at most 200, with their last message. */
  readonly claims: readonly BulkClaim[]
  /** The command that does the same. */
  readonly command: string
}

export interface BulkClaim {
  readonly namespace: string
  readonly name: string
  readonly state: 'working' | 'failed' | 'unfinished'
  readonly message: string
}

/** A run that is recorded on claims, possibly by another process. */
export interface RecordedRun {
  readonly kind: 'grow' | 'migrate'
  /** The id of the operation or run. */
  readonly id: string
  /** Classes of migrate; amount of grow. */
  readonly from?: string
  readonly to?: string
  readonly by?: string
  readonly namespaces: readonly string[]
  readonly claims: number
  /** Claims that have the new class or size. */
  readonly completed: number
  /** Whether all claims have the new class or size and the record is closed. */
  readonly isClosed: boolean
  readonly isUndo: boolean
}

export interface BulkResponse {
  /** Newest first, at most 50. */
  readonly runs: readonly BulkRun[]
  readonly recorded: readonly RecordedRun[]
}
