// How everything but the API server itself reaches objects: one interface, two implementations. in-process.ts calls
// the server's verbs directly and shares its frozen objects; http-client.ts speaks to any Kubernetes API server.
// Objects carry no apiVersion and kind; the Kind that is passed says them. What is returned is frozen.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { ApiError } from '../api/status-error.ts'

export interface ObjectRef {
  /** '' or absent for cluster-scoped kinds. */
  readonly namespace?: string
  readonly name: string
}

export interface ListRequest {
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly limit?: number
  readonly continueToken?: string
  /** Absent: the newest. '0': whatever the server has at hand. */
  readonly resourceVersion?: string
  readonly signal?: AbortSignal
}

export interface ObjectList<T extends KubeObject> {
  readonly items: readonly Readonly<Stored<T>>[]
  readonly resourceVersion: string
  readonly continueToken?: string
}

export interface WatchRequest {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Changes after this version; absent: the current state first. */
  readonly resourceVersion?: string
  /** The current state as added events, then a bookmark with `endsInitialEvents`, then changes. */
  readonly sendInitialEvents?: boolean
  /** The server ends the stream after this long. */
  readonly timeoutSeconds?: number
  readonly signal: AbortSignal
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: Readonly<Stored<T>> }
  | { readonly type: 'bookmark'; readonly resourceVersion: string; readonly endsInitialEvents: boolean }

export interface WriteOptions {
  readonly fieldManager?: string
  readonly dryRun?: boolean
  readonly subresource?: string
  readonly signal?: AbortSignal
}

export type Patch =
  | { readonly type: 'merge' | 'strategic'; readonly body: object }
  | { readonly type: 'json'; readonly body: readonly object[] }
  | { readonly type: 'apply'; readonly body: object; readonly force?: boolean }

export interface DeleteRequest {
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan'
  readonly gracePeriodSeconds?: number
  readonly uid?: string
  readonly resourceVersion?: string
  readonly dryRun?: boolean
  readonly signal?: AbortSignal
}

/**
 * One write of a commit. Each is conditional the way its verb is: an update by its resourceVersion, a create by its name.
 * Later ones see what earlier ones did; a second write of one object cannot name the version the first will make, so
 * let it be a patch.
 */
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

/** Every failure is an ApiError (src/api/status-error.ts), also when the server could not be reached (503, reason ServiceUnavailable). */
export interface Client {
  get<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    options?: { resourceVersion?: string; signal?: AbortSignal },
  ): Promise<Readonly<Stored<T>>>
  list<T extends KubeObject>(kind: Kind<T>, request?: ListRequest): Promise<ObjectList<T>>
  /**
   * With a subresource ('binding', 'eviction') the object is the body of that subresource, and is returned as it was
   * sent: without uid and resourceVersion, whatever the type says.
   */
  create<T extends KubeObject>(kind: Kind<T>, object: Readonly<T>, options?: WriteOptions): Promise<Readonly<Stored<T>>>
  /** Conditional when the object carries a resourceVersion. */
  update<T extends KubeObject>(kind: Kind<T>, object: Readonly<T>, options?: WriteOptions): Promise<Readonly<Stored<T>>>
  patch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<Readonly<Stored<T>>>
  /** The object as it was left: gone, or marked as going. */
  delete<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    request?: DeleteRequest,
  ): Promise<Readonly<Stored<T>> | undefined>
  /** Ends when the server ends it or the signal fires; throws ApiError 410 when the version is too old. */
  watch<T extends KubeObject>(kind: Kind<T>, request: WatchRequest): AsyncIterable<WatchEvent<T>>
  /**
   * The writes in the given order, at most COMMIT_WRITES_MAX: as one transaction where the server can (ours), else one by one, stopping at the
   * first that fails.
   * Either way every caller must be right after a crash between any two of them.
   * Returns what the whole commit left behind of each write's object; undefined when it is gone.
   * An error says by `failedWrite(error)` which write it was.
   */
  commit(
    writes: readonly CommitWrite[],
    options?: { fieldManager?: string; signal?: AbortSignal },
  ): Promise<readonly (Readonly<Stored> | undefined)[]>
  /** Whether commit is one transaction. */
  commitsAtomically(): Promise<boolean>
  /** Whether the server serves this kind; a yes is remembered, a no is asked again. */
  serves(kind: Kind): Promise<boolean>
}

/** The same error with one more cause, which names the write of the commit that failed. */
export function commitWriteFailed(error: unknown, index: number): unknown {
  if (!(error instanceof ApiError)) return error
  const cause = { reason: 'CommitWriteFailed', message: 'this write failed', field: `writes[${index}]` }
  const details = { ...error.details, causes: [...(error.details?.causes ?? []), cause] }
  const failure = new ApiError(error.code, error.reason, error.message, details, error.continueToken)
  failure.cause = error
  return failure
}

/** Which write of a commit an error is about, counted from 0; undefined when it is about none in particular. */
export function failedWrite(error: unknown): number | undefined {
  if (!(error instanceof ApiError)) return undefined
  const cause = error.details?.causes?.find(({ reason }) => reason === 'CommitWriteFailed')
  const index = /^writes\[(\d+)\]$/.exec(cause?.field ?? '')?.[1]
  return index === undefined ? undefined : Number(index)
}
