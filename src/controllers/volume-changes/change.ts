// The interface of a kind of volume change: expansion (../expanding) or modification of attributes (../modifying). Each
// kind plans and applies its steps. volume-change-controllers.ts calls it and never runs two changes to a volume at once.
import type { KubeObject, Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { Cache, Outcome, Source } from '../../runtime/index.ts'

/** A bound claim and its volume. They reference each other, and the volume belongs to this driver. */
export interface Subject {
  readonly claim: Readonly<Stored<PersistentVolumeClaim>>
  readonly volume: Readonly<Stored<PersistentVolume>>
}

export interface VolumeChange {
  readonly name: 'expanding' | 'modifying'
  /**
   * Whether an update of the claim requires a reconcile. Must be false for the change's own writes, which must not reset its
   * backoff.
   */
  matters(next: Subject['claim'], old: Subject['claim']): boolean
  /** Further objects that trigger a reconcile, for example a class that is created or a pod that terminates. */
  readonly sources?: readonly Source[]
  /** Caches that are read but trigger no reconcile. The controller waits until they are synced. */
  readonly reads?: readonly Cache<KubeObject>[]
  /**
   * Whether the claim and the volume show that there is nothing to reconcile. The claim then neither waits for another change of
   * its volume nor delays one. Must be false if `reconcile` would write or call the driver. Default: unknown.
   */
  hasNothingToDo?(subject: Subject): boolean
  /** Applies the steps that are due. Never called concurrently for the same claim. */
  reconcile(subject: Subject, signal: AbortSignal): Promise<Outcome>
  /** Discards the state of a claim that was deleted or no longer uses this driver. */
  forget?(claim: ObjectKey): void
  /** Whether there is state to discard. Default: there may be. */
  hasState?(claim: ObjectKey): boolean
  /** Ends the wait after a rejected call, because a user requests a retry. Default: there is no such wait. */
  retryNow?(claim: Subject['claim']): void
  /** Subscribes to caches when the controller starts. The returned function unsubscribes. */
  follow?(subjectOf: (claim: Subject['claim']) => Subject | undefined): () => void
}
