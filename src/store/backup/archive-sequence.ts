// Checks that an archive continues the archive before it. A restore requires one sequence: a full archive, then the
// incremental archives that continue it. Without isOneSequence, an inspection also accepts several sequences, and a first
// archive that is incremental.
import type { Manifest } from './archive.ts'
import { ArchiveError } from './read-archive.ts'

/**
 * Throws an ArchiveError that names the archive, unless it continues the previous archive or, if there is none, is
 * full.
 */
export function checkSequence(name: string, manifest: Manifest, previousManifest: Manifest | undefined): void {
  const { since, parent, storeFormat } = manifest
  if (!previousManifest) {
    if (since === undefined) return
    throw new ArchiveError(
      `${name} is incremental: it continues a backup at revision ${since}. Name the full archive and all later ones, in order.`,
    )
  }
  if (since === undefined) throw new ArchiveError(`${name} is a full archive: only the first archive can be full.`)
  if (since !== previousManifest.revision) {
    throw new ArchiveError(
      `${name} continues a backup at revision ${since}, but the archive before it ends at revision ` +
        `${previousManifest.revision}. Name all archives of one sequence, in order.`,
    )
  }
  if (parent !== undefined && parent !== previousManifest.id) {
    throw new ArchiveError(
      `${name} continues another archive than the one before it, which has the same revision ${since}. ` +
        'Name the archives of one sequence, in order.',
    )
  }
  if (previousManifest.isMigrating || storeFormat !== previousManifest.storeFormat) {
    throw new ArchiveError(`${name} cannot continue the archive before it: the format of the store changed in between.`)
  }
}
