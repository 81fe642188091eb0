// Checks that an archive continues the archive before it. Archives are restored and inspected in this order: a full archive,
// then the incremental archives that continue it.
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
  if (since !== previousManifest.revision || (parent !== undefined && parent !== previousManifest.id)) {
    throw new ArchiveError(
      `${name} continues a backup at revision ${since}, not the one before it at revision ${previousManifest.revision}.`,
    )
  }
  if (previousManifest.isMigrating || storeFormat !== previousManifest.storeFormat) {
    throw new ArchiveError(`${name} cannot continue the archive before it: the format of the store changed in between.`)
  }
}
