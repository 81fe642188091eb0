// Runs `stowage backup verify`: reads archives completely and verifies them.
import { stat } from 'node:fs/promises'
import type { Clock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { ArchiveInspector, type InspectedArchive } from '../../../store/backup/index.ts'
import { type ArchiveReader, createArchiveReader } from './archive-reader.ts'

/** Verifies the checksums of archives and of their records, and that each incremental archive continues its predecessor. */
export async function* verifyArchives(paths: readonly string[], clock: Clock): AsyncGenerator<InspectedArchive> {
  const inspector = new ArchiveInspector()
  const reader = await createArchiveReader(paths, { title: 'Verifying', clock })
  try {
    for (const path of paths) {
      const inspected = await inspectArchiveFile(inspector, path, reader)
      reader.finish()
      yield inspected
    }
  } finally {
    reader.finish()
  }
}

/** Reads a complete archive as the next one of the inspector. Throws if the archive's own checksums do not match. */
export async function inspectArchiveFile(
  inspector: ArchiveInspector,
  path: string,
  reader: ArchiveReader,
): Promise<InspectedArchive> {
  await stat(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  return inspector.inspect({ name: path, chunks: reader.read(path) })
}
