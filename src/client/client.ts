// The client interface with which components read and write objects. http/http-client.ts implements it for any Kubernetes API
// server, ../apiserver/in-process/client.ts for components in the API server process.
// Objects have no apiVersion or kind, because each call has a Kind parameter. Stored objects are returned frozen.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import type { LeaseFence } from '../api/kinds/lease/lease-fence.ts'
import { ApiError } from '../api/status-error.ts'

export interface ObjectRef {
  /** Empty or absent for cluster-scoped kinds. */
  readonly namespace?: string
  readonly name: string
}

export interface GetOptions {
  readonly resourceVersion?: string
  /** A log message that describes what the caller does without permission to read the object. Set only by callers that can continue without the object. */
  readonly denialMessage?: string
  readonly signal?: AbortSignal
}

export interface ListRequest {
  /** Default: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly limit?: number
  readonly continueToken?: string
  /** Default: the newest state. '0' allows any state that the server has cached. */
  readonly resourceVersion?: string
  readonly signal?: AbortSignal
}

interface ObjectList<T extends KubeObject> {
  readonly items: readonly Readonly<Stored<T>>[]
  readonly resourceVersion: string
  readonly continueToken?: string
}

export interface WatchRequest {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** The watch sends the changes after this version. Without it, the watch sends the current state first. */
  readonly resourceVersion?: string
  /** Sends the current state as added events, then a bookmark with `endsInitialEvents`, then changes. */
  readonly sendInitialEvents?: boolean
  /** The server ends the watch after this time. */
  readonly timeoutSeconds?: number
  readonly signal: AbortSignal
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: Readonly<Stored<T>> }
  | { readonly type: 'bookmark'; readonly resourceVersion: string; readonly endsInitialEvents: boolean }

export interface WriteOptions {
  /** Leases that this process must hold when the write is committed. Only Stowage servers check them. */
  readonly fences?: readonly LeaseFence[]
  readonly fieldManager?: string
  readonly dryRun?: boolean
  readonly subresource?: string
  /** A client with a limit of requests in flight prefers other requests to this one (adaptive-limit.ts). Default: false. */
  readonly isBackground?: boolean
  readonly signal?: AbortSignal
}

export type Patch =
  | { readonly type: 'merge' | 'strategic'; readonly body: object }
  | { readonly type: 'json'; readonly body: readonly object[] }
  | { readonly type: 'apply'; readonly body: object; readonly force?: boolean }

export interface DeleteRequest extends Pick<WriteOptions, 'fences'> {
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan'
  readonly gracePeriodSeconds?: number
  readonly uid?: string
  readonly resourceVersion?: string
  readonly dryRun?: boolean
  readonly signal?: AbortSignal
}

/** One write of a commit, with the conditions of its verb. Later writes apply to the result of earlier ones. */
export type CommitWrite =
  | { readonly do: 'create'; readonly kind: Kind; readonly object: KubeObject; readonly subresource?: 'binding' }
  | { readonly do: 'update'; readonly kind: Kind; readonly object: KubeObject; readonly subresource?: string }
  | {
      readonly do: 'patch'
      readonly kind: Kind
      readonly ref: ObjectRef
      readonly patch: Patch
      readonly subresource?: string
    }
  | {
      readonly do: 'delete'
      readonly kind: Kind
      readonly ref: ObjectRef
      readonly uid?: string
      readonly resourceVersion?: string
    }

export interface CommitOptions extends Pick<WriteOptions, 'fieldManager' | 'signal' | 'fences'> {
  /** Whether the caller ignores the returned objects, so that they need not be encoded, sent and decoded. Default: false. */
  readonly omitsObjects?: true
}

/** Every failure is an ApiError (src/api/status-error.ts). If the server cannot be reached, its code is 503. */
export interface Client {
  get<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef, options?: GetOptions): Promise<Readonly<Stored<T>>>
  list<T extends KubeObject>(kind: Kind<T>, request?: ListRequest): Promise<ObjectList<T>>
  /**
   * With a subresource ('binding', 'eviction'), the object is the body of the request and is returned unchanged:
   * despite its type, it has no uid or resourceVersion. With 'token', the result is the TokenRequest with its status.
   */
  create<T extends KubeObject>(kind: Kind<T>, object: Readonly<T>, options?: WriteOptions): Promise<Readonly<Stored<T>>>
  /** Conditional if the object has a resourceVersion. */
  update<T extends KubeObject>(kind: Kind<T>, object: Readonly<T>, options?: WriteOptions): Promise<Readonly<Stored<T>>>
  patch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<Readonly<Stored<T>>>
  /** Returns the object if it is only marked for deletion, or undefined if it was removed. */
  delete<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    request?: DeleteRequest,
  ): Promise<Readonly<Stored<T>> | undefined>
  /** Ends on abort or when the server ends it. Throws 410 (`isExpired`) if the resourceVersion is too old. */
  watch<T extends KubeObject>(kind: Kind<T>, request: WatchRequest): AsyncIterable<WatchEvent<T>>
  /**
   * Applies at most COMMIT_WRITES_MAX writes in order: in one transaction if `commitsAtomically`, otherwise one by one until
   * one fails. Callers must be correct in both cases, and after a crash between any two writes.
   * Returns the object of each write, or undefined if it was removed. With `omitsObjects` the list may be empty.
   * `failedWriteIndex(error)` returns the index of the write that failed.
   */
  commit(writes: readonly CommitWrite[], options?: CommitOptions): Promise<readonly (Readonly<Stored> | undefined)[]>
  /** Returns whether a commit is one transaction. */
  commitsAtomically(): Promise<boolean>
  /** Returns whether the server serves this kind. */
  serves(kind: Kind): Promise<boolean>
}

/**
 * Returns a copy of an ApiError with an additional cause that contains the index of the failed write. Returns other
 * errors unchanged.
 */
export function commitWriteFailed(error: unknown, index: number): unknown {
  if (!(error instanceof ApiError)) return error
  const cause = { reason: 'CommitWriteFailed', message: 'this write failed', field: `writes[${index}]` }
  const details = { ...error.details, causes: [...(error.details?.causes ?? []), cause] }
  const failure = new ApiError(error.code, error.reason, error.message, details, error.continueToken)
  failure.cause = error
  return failure
}

/** Returns the index of the write that made a commit fail, or undefined if the error is not about a single write. */
export function failedWriteIndex(error: unknown): number | undefined {
  if (!(error instanceof ApiError)) return undefined
  const cause = error.details?.causes?.find(({ reason }) => reason === 'CommitWriteFailed')
  const index = /^writes\[(\d+)\]$/.exec(cause?.field ?? '')?.[1]
  return index === undefined ? undefined : Number(index)
}
