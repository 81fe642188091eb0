// Reads values from the medium and compares them with their checksums. Remembers the damaged records that reads and the scrub
// (scrub.ts) have found, until the records are dropped.

import { type Medium, UnreadableValueError } from './medium.ts'
import { checksumOf } from './records/checksum.ts'
import { DamagedRecordError, type Revision } from './store.ts'
import type { Version } from './version.ts'

export class CheckedValues {
  readonly #medium: Medium
  readonly #damage = new Map<Revision, DamagedRecordError>()
  readonly #onDamage: (error: DamagedRecordError) => void

  /** `onDamage` is called once for each damaged record. */
  constructor(medium: Medium, onDamage: (error: DamagedRecordError) => void) {
    this.#medium = medium
    this.#onDamage = onDamage
  }

  /** The known damaged records, by revision. */
  get damage(): ReadonlyMap<Revision, DamagedRecordError> {
    return this.#damage
  }

  /**
   * Returns the stored value of a version, or the error of a damaged record. A record that is known to be damaged is not read
   * again: a device may take seconds to fail.
   */
  read({ key, revision, checksum }: Version): Uint8Array | DamagedRecordError {
    const knownError = this.#damage.size === 0 ? undefined : this.#damage.get(revision)
    if (knownError) return knownError
    try {
      const storedValue = this.#medium.read(revision)
      if (storedValue && checksumOf(storedValue) === checksum) return storedValue
      return this.report({ key, revision, reason: reasonOf(storedValue) })
    } catch (error) {
      if (error instanceof UnreadableValueError) return this.report({ key, revision, reason: error.message })
      throw error
    }
  }

  /** Stores the damage of a record. Returns the error of the first report. */
  report(damage: { readonly key: string; readonly revision: Revision; readonly reason: string }): DamagedRecordError {
    const knownError = this.#damage.get(damage.revision)
    if (knownError) return knownError
    const error = new DamagedRecordError(damage)
    this.#damage.set(damage.revision, error)
    this.#onDamage(error)
    return error
  }

  /** Removes the damage of records that were dropped. */
  forget(revisions: readonly Revision[]): void {
    if (this.#damage.size === 0) return
    for (const revision of revisions) this.#damage.delete(revision)
  }
}

const reasonOf = (storedValue: Uint8Array | undefined): string =>
  storedValue ? 'the checksum of its value does not match' : 'its value is missing'
