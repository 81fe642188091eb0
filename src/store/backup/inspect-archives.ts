// Inspects backup archives without restoring them: verifies their own checksums and those of their records, and finds the
// records that the store had and that no archive of the sequence contains.
import type { MediumRecord } from '../medium.ts'
import { DESCRIPTION, HEADER, readName } from '../records/record-codec.ts'
import { type RecordDamage, RecordInspector } from '../records/record-inspector.ts'
import type { Revision } from '../store.ts'
import type { ArchiveEnd, Frame, KeptRevisions, Manifest } from './archive.ts'
import { checkSequence } from './archive-sequence.ts'
import { ArchiveError, type ArchiveSource, readArchive } from './read-archive.ts'

/** The findings about an archive, and about the store that a restore of it and the archives before it would create. */
export interface InspectedArchive {
  readonly name: string
  readonly manifest: Manifest
  readonly end: ArchiveEnd
  /** Whether the archives begin with a full one. Otherwise missing revisions cannot be found. */
  readonly isComplete: boolean
  /** The number of intact records of the store. */
  readonly records: number
  /** Damaged records of the store, in revision order. */
  readonly damagedRecords: readonly RecordDamage[]
  /** Revisions that the store had according to this archive, and that no archive contains. */
  readonly missingRevisions: readonly Revision[]
}

export interface ArchiveInspectorOptions {
  /**
   * Whether the archives must be one full archive and those that continue it. Otherwise every full archive starts a new
   * sequence, and the first archive may be incremental. Default: false.
   */
  readonly isOneSequence?: boolean
  /** Called for every intact record. */
  readonly onRecord?: (record: MediumRecord) => void
  /** Called for every record of an earlier archive that the store no longer has. */
  readonly onDrop?: (revision: Revision) => void
}

/** Inspects archives one after the other. */
export class ArchiveInspector {
  readonly #options: ArchiveInspectorOptions
  #previousManifest: Manifest | undefined
  #isComplete = true
  /** The number of entries of each record of the store, after the archives so far. */
  #entries = new Map<Revision, number>()
  #damage = new Map<Revision, RecordDamage>()
  #missingRevisions: Revision[] = []

  constructor(options: ArchiveInspectorOptions = {}) {
    this.#options = options
  }

  /** Throws an ArchiveError if the archive is damaged or incomplete, or does not continue the one before it. */
  async inspect(source: ArchiveSource): Promise<InspectedArchive> {
    const { name } = source
    const records = new RecordInspector({ path: name, onRecord: this.#options.onRecord })
    this.#missingRevisions = []
    let manifest: Manifest | undefined
    for await (const frame of readArchive(source)) {
      if (frame.type === 'manifest') {
        manifest = frame.manifest
        this.#startArchive(name, manifest)
      } else if (!manifest) throw new ArchiveError(`${name} is damaged: it does not begin with a manifest.`)
      else if (frame.type === 'end') return this.#finishArchive({ name, manifest, end: frame.end }, records)
      else this.#add(frame, records)
    }
    throw new ArchiveError(`${name} is damaged: it has no end.`)
  }

  #startArchive(name: string, manifest: Manifest): void {
    const { isOneSequence = false } = this.#options
    if (isOneSequence) checkSequence(name, manifest, this.#previousManifest)
    if (manifest.since === undefined) {
      this.#entries.clear()
      this.#damage.clear()
      this.#isComplete = true
    } else if (this.#previousManifest) checkSequence(name, manifest, this.#previousManifest)
    else this.#isComplete = false
    this.#previousManifest = manifest
  }

  #add(frame: Frame, records: RecordInspector): void {
    if (frame.type === 'kept') this.#dropUnkept(frame.kept)
    if (frame.type !== 'entries') return
    for (const { name, value } of frame.entries) {
      const recordName = readName(name, 0)
      records.add(recordName, value)
      const [kind, revision] = recordName
      if (kind !== DESCRIPTION) this.#entries.set(revision, (this.#entries.get(revision) ?? 0) + 1)
      if (kind === HEADER) this.#damage.delete(revision)
    }
  }

  /**
   * Removes the records in the range that the store no longer has, and adds the revisions that no archive contains to the missing ones.
   */
  #dropUnkept({ afterRevision, upToRevision, revisions }: KeptRevisions): void {
    const keptRevisions = new Set(revisions)
    if (this.#isComplete) this.#missingRevisions.push(...revisions.filter((revision) => !this.#entries.has(revision)))
    for (const revision of [...this.#entries.keys()]) {
      if (revision <= afterRevision || revision > upToRevision || keptRevisions.has(revision)) continue
      this.#entries.delete(revision)
      this.#damage.delete(revision)
      this.#options.onDrop?.(revision)
    }
  }

  #finishArchive(
    { name, manifest, end }: Pick<InspectedArchive, 'name' | 'manifest' | 'end'>,
    records: RecordInspector,
  ): InspectedArchive {
    const { damagedRecords, description } = records.finish()
    if (!description) throw new ArchiveError(`${name} is damaged: the description of the store is missing or damaged.`)
    for (const damage of damagedRecords) this.#damage.set(damage.revision, damage)
    const missingRevisions = this.#missingRevisions
    let entries = 1 // the description
    for (const count of this.#entries.values()) entries += count
    if (this.#isComplete && missingRevisions.length === 0 && entries !== end.storeEntries) {
      throw new ArchiveError(`${name} is damaged: the store has ${entries} entries instead of ${end.storeEntries}.`)
    }
    const allDamagedRecords = [...this.#damage.values()].sort((a, b) => a.revision - b.revision)
    return {
      name,
      manifest,
      end,
      isComplete: this.#isComplete,
      records: this.#entries.size - allDamagedRecords.length,
      damagedRecords: allDamagedRecords,
      missingRevisions,
    }
  }
}
