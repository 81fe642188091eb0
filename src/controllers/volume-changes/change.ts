// A change that the volume of a bound claim is asked for: more room, or other attributes. Each kind of change decides for
// itself what is due and takes its steps; the frame (changing-controllers.ts) lets no volume undergo two at once.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { Cache, Outcome, Source } from '../../runtime/index.ts'

/** A bound claim, and the volume of this driver that says it belongs to it. */
export interface Subject {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly volume: Readonly<PersistentVolume>
}

export interface Change {
  readonly name: 'expanding' | 'modifying'
  /** Whether an update of the claim may have given it something to do. Its own writes should not: they would cut its backoff short. */
  matters(next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): boolean
  /** What else wakes claims: a class that appears, a pod that ends. */
  readonly sources?: readonly Source[]
  /** Caches that it reads and that wake nobody. */
  readonly reads?: readonly Cache<any>[]
  /** Takes the steps that are due now, one after the other. Called for one claim at a time. */
  reconcile(subject: Subject, signal: AbortSignal): Promise<Outcome>
  /** The claim is gone, or no longer the driver's: what was known of it may go. */
  forget?(claim: ObjectKey): void
  /** Called when the work begins, to follow caches for other reasons; the returned function ends it. */
  follow?(subjectOf: (claim: Readonly<PersistentVolumeClaim>) => Subject | undefined): () => void
}
