// Public exports of the backup archives of the embedded store.
export type { Manifest } from './archive.ts'

export { dumpStore } from './dump-store.ts'
export { ArchiveInspector, type InspectedArchive } from './inspect-archives.ts'
export { ArchiveError, type ArchiveSource, isArchiveFile } from './read-archive.ts'
export { COPYING_DIR, restoreCopy } from './restore-copy.ts'
export { RESTORING_FILE, requireNoStore, restoreStore } from './restore-store.ts'
export { type ArchiveSink, ArchiveWriter } from './write-archive.ts'
