// One kind of change to the volume of a bound claim: expansion (../expanding) or modification of its attributes
// (../modifying). Each kind plans and applies its own steps; volume-change-controllers.ts wakes it and ensures that no
// volume undergoes two changes at once.
import type { KubeObject, Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { Cache, Outcome, Source } from '../../runtime/index.ts'

/** A bound claim and its volume. Both name each other, and the volume belongs to this driver. */
export interface Subject {
  readonly claim: Readonly<Stored<PersistentVolumeClaim>>
  readonly volume: Readonly<Stored<PersistentVolume>>
}

export interface VolumeChange {
  readonly name: 'expanding' | 'modifying'
  /** Whether an update of the claim may require work. Must ignore the change's own writes: they would reset its backoff. */
  matters(next: Subject['claim'], old: Subject['claim']): boolean
  /** Further objects that wake claims: a class that is created, a pod that terminates. */
  readonly sources?: readonly Source[]
  /** Caches that are read but wake no claim; the controller waits until they are synced. */
  readonly reads?: readonly Cache<KubeObject>[]
  /** Applies the steps that are due now, in order. Called for one claim at a time. */
  reconcile(subject: Subject, signal: AbortSignal): Promise<Outcome>
  /** Discards the state of a claim that was deleted or no longer uses this driver. */
  forget?(claim: ObjectKey): void
  /** Called when the controller starts, to subscribe to caches; the returned function unsubscribes. */
  follow?(subjectOf: (claim: Subject['claim']) => Subject | undefined): () => void
}
