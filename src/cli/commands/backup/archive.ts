// Runs `stowage backup --archive`: writes the store and the credentials as one archive to a file or to standard output.
import { once } from 'node:events'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { Clock } from '../../../base/clock.ts'
import { syncDirectory } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import {
  ArchiveInspector,
  type ArchiveSink,
  ArchiveWriter,
  dumpStore,
  type Manifest,
} from '../../../store/backup/index.ts'
import type { RecordDamage } from '../../../store/index.ts'
import { createWorkProgress, standardError } from '../../output/work-progress.ts'
import { createArchiveReader } from './archive-reader.ts'
import { type FileOptions, findFiles } from './files.ts'
import { inspectArchiveFile } from './verify-archives.ts'

export interface ArchiveOptions extends FileOptions {
  /** The path of the archive, or the stream to write it to. */
  readonly target: string | Writable
  /** The path of an earlier archive or its revision, for an incremental archive. */
  readonly since?: string
  readonly id: string
  readonly clock: Clock
}

export interface Archive {
  /** The path of the archive, or `-`. */
  readonly archive: string
  readonly id: string
  readonly revision: number
  /** The revision that an incremental archive continues. */
  readonly since?: number
  readonly bytes: number
  readonly files: readonly string[]
  /** The file with the key that is not part of the archive, if there is one. */
  readonly keyFile?: string
  /** The records that do not match their checksums. The archive contains them unchanged. */
  readonly damagedRecords: readonly RecordDamage[]
}

export async function writeArchive(options: ArchiveOptions): Promise<Archive> {
  const { dataDir, target, id, clock } = options
  const { files, keyFile } = await findFiles(options)
  const since = options.since === undefined ? undefined : await findBase(options.since, clock)
  const writeFiles = async (writer: ArchiveWriter) => {
    for (const { name, path } of files) await writer.write({ type: 'file', name, content: await readFile(path) })
  }
  const createdAt = new Date(clock.nowMs()).toISOString()
  const write = async (sink: ArchiveSink) => {
    const progress = createWorkProgress({ title: 'Writing the archive', unit: 'bytes', clock, output: standardError() })
    const writer = new ArchiveWriter(async (bytes) => {
      await sink(bytes)
      progress.add(bytes.length)
    })
    try {
      const dump = await dumpStore({ dir: join(dataDir, 'store'), id, createdAt, since, writeFiles }, writer)
      return { ...dump, bytes: writer.bytes }
    } finally {
      progress.finish()
    }
  }
  const { manifest, damagedRecords, bytes } =
    typeof target === 'string' ? await writeToFile(resolve(target), write) : await write(createSink(target))
  return {
    archive: typeof target === 'string' ? resolve(target) : '-',
    id,
    revision: manifest.revision,
    ...(manifest.since === undefined ? {} : { since: manifest.since }),
    bytes,
    files: files.map(({ name }) => name),
    ...(keyFile ? { keyFile } : {}),
    damagedRecords,
  }
}

/** Writes a private file as PATH.partial and renames it when it is complete and synced. */
async function writeToFile<T>(path: string, write: (sink: ArchiveSink) => Promise<T>): Promise<T> {
  if (await stat(path).catch(() => undefined))
    throw new UsageError(`--archive ${path}: the file exists. Choose a new one.`)
  const partialPath = `${path}.partial`
  await rm(partialPath, { force: true })
  const file = await open(partialPath, 'wx', 0o600).catch((error: Error) => {
    throw new UsageError(`--archive ${path} cannot be created: ${error.message}. Choose a writable directory.`)
  })
  try {
    const result = await write((bytes) => file.writeFile(bytes))
    await file.sync()
    await rename(partialPath, path)
    await syncDirectory(dirname(path))
    return result
  } finally {
    await file.close()
    await rm(partialPath, { force: true })
  }
}

/** Creates a sink that waits for the stream to drain when its buffer is full. */
function createSink(stream: Writable): ArchiveSink {
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure = error
  })
  return async (bytes) => {
    if (failure) throw failure
    if (!stream.write(bytes)) await once(stream, 'drain')
  }
}

/** Returns the backup that --since names. Verifies an archive, because the incremental one cannot be restored without it. */
async function findBase(since: string, clock: Clock): Promise<{ revision: number } | Manifest> {
  if (/^\d{1,15}$/.test(since)) return { revision: Number(since) }
  const reader = await createArchiveReader([since], { title: 'Verifying', clock })
  const { manifest } = await inspectArchiveFile(new ArchiveInspector(), since, reader).finally(reader.finish)
  return manifest
}
