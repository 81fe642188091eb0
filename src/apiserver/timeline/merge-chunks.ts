// Merges the chunks of the journal into compressed segments, and bounds the journal: the records of one object in each
// segment, and the segments in total. The store deletes chunks and segments that are too old. A merge runs in its own
// transaction, and usually replaces a hundred chunks.
import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Entry, type Revision, type Store, StoreClosedError } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import { decodeRecords, ownerInLine, timeInLine } from './decode-records.ts'
import type { Journal } from './journal.ts'
import { CHUNKS_PREFIX, RECORD_AGE_MS_MAX, SEGMENTS_PREFIX } from './journal-keys.ts'
import { isChange, type JournalRecord, ownerOf, timeOf } from './journal-record.ts'
import type { UnmergedChunk, UnmergedChunks } from './unmerged-chunks.ts'

export interface JournalLimits {
  /** Chunks are merged when there are this many. */
  readonly chunks: number
  /**
   * Records of one object, or calls for one volume, in a segment. Beyond it, one record with their number replaces the oldest;
   * the creation is kept.
   */
  readonly volumeRecords: number
  /** Bytes of all segments. Beyond it, the oldest segments are deleted. */
  readonly bytes: number
  /** Number of all segments. Beyond it, the oldest are deleted. */
  readonly segments: number
}

/** A merge replaces at most this many chunks, because a transaction on etcd can contain 128 writes. */
const MERGED_CHUNKS_MAX = 100
/** A merge takes fewer chunks if they have more bytes than this. */
const MERGED_BYTES_MAX = 1024 * 1024
/** With 600 group commits per second there are then up to 3,000 chunks. */
const MERGE_INTERVAL_MS = 5_000
/** Compresses almost as well as the default level, in a third of the CPU time. */
const COMPRESSION_LEVEL = 1

export const JOURNAL_LIMITS: JournalLimits = {
  chunks: 100,
  volumeRecords: 200,
  bytes: 64 * 1024 * 1024,
  segments: 10_000,
}

export interface MaintainOptions {
  readonly store: Store
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Registry
  readonly signal: AbortSignal
  readonly limits?: JournalLimits
}

/** Resolves when the stored segments are counted. Merges chunks every few seconds until the signal is aborted. */
export async function maintainJournal(options: MaintainOptions): Promise<void> {
  const { store, clock, log, signal, limits = JOURNAL_LIMITS } = options
  const segments = new Map<string, number>()
  const dropped = registerMetrics(options, segments)
  await followStore({
    store,
    prefix: SEGMENTS_PREFIX,
    description: 'segments of the journal',
    clock,
    log,
    signal,
    onEntry(key, entry) {
      if (entry) segments.set(key, entry.value.length)
      else segments.delete(key)
    },
  })
  const { unmergedChunks } = options.journal
  // Without chunks in memory, and for those of earlier starts, the chunks are read from the store.
  let readsChunks = true
  const maintain = async () => {
    try {
      if (unmergedChunks) {
        dropped.inc({ limit: 'volume' }, await mergeUnmerged(store, unmergedChunks, limits))
        readsChunks ||= unmergedChunks.takeDropped()
      }
      while (readsChunks && !signal.aborted) {
        const result = await mergeChunks(store, limits)
        if (!result) break
        dropped.inc({ limit: 'volume' }, result.droppedRecords)
      }
      if (unmergedChunks) readsChunks = false
      if (signal.aborted) return
      dropped.inc({ limit: 'total' }, await deleteExcess(store, segments, limits))
    } catch (error) {
      if (signal.aborted || error instanceof StoreClosedError) return
      log.warn({ reason: (error as Error).message }, 'cannot merge the journal; retrying')
    }
    if (!signal.aborted) schedule()
  }
  const schedule = () => {
    const cancel = clock.after(MERGE_INTERVAL_MS, () => {
      signal.removeEventListener('abort', cancel)
      void maintain()
    })
    signal.addEventListener('abort', cancel, { once: true })
  }
  schedule()
}

const compress = promisify(deflateRaw)

/** Merges chunks that are in memory, while there are enough of them. Returns the number of dropped records. */
export async function mergeUnmerged(store: Store, chunks: UnmergedChunks, limits: JournalLimits): Promise<number> {
  if (chunks.size < limits.chunks) return 0
  // Records of an owner can also be in chunks that the last merge has left, at most as many as half of the limit.
  const isLimited = 2 * chunks.takeRecordsMax() > limits.volumeRecords
  let droppedRecords = 0
  for (let count = Math.floor(chunks.size / limits.chunks); count > 0; count--) {
    const merged = chunks.first(Math.min(limits.chunks, MERGED_CHUNKS_MAX), MERGED_BYTES_MAX)
    const values = merged.map(({ value }) => value)
    const limited = isLimited ? limitLines(values.flatMap(linesOf), limits.volumeRecords) : undefined
    const isMerged = await replaceChunks(store, merged, limited ? bytesOfLines(limited.lines) : joinBytes(values))
    if (!isMerged) {
      chunks.dropAll()
      break
    }
    chunks.remove(merged)
    droppedRecords += limited?.droppedRecords ?? 0
  }
  return droppedRecords
}

/** Merges the oldest chunks of the store. Returns undefined if there are too few, or if another server has merged them. */
export async function mergeChunks(
  store: Store,
  limits: JournalLimits,
): Promise<{ readonly droppedRecords: number } | undefined> {
  const { entries } = await store.list({ prefix: CHUNKS_PREFIX, limit: Math.max(limits.chunks, MERGED_CHUNKS_MAX) })
  if (entries.length < limits.chunks) return undefined
  const chunks = firstOf(entries)
  const { lines, droppedRecords } = limitLines(
    chunks.flatMap(({ value }) => linesOf(value)),
    limits.volumeRecords,
  )
  return (await replaceChunks(store, chunks, bytesOfLines(lines))) ? { droppedRecords } : undefined
}

/** Replaces chunks with a segment. Returns false if another server has merged them. */
async function replaceChunks(
  store: Store,
  chunks: readonly (UnmergedChunk & { readonly modRevision?: Revision })[],
  records: Uint8Array,
): Promise<boolean> {
  const [firstChunk, lastChunk] = [chunks[0]!, chunks.at(-1)!]
  const key = `${SEGMENTS_PREFIX}${firstChunk.key.slice(CHUNKS_PREFIX.length)}`
  const value = await compress(records, { level: COMPRESSION_LEVEL })
  const expiresAtMs = Math.max(...chunks.map((chunk) => timeOfChunk(chunk.value))) + RECORD_AGE_MS_MAX
  let isMerged = false
  await store.transact((view) => {
    // Every merge takes the oldest chunks up to the same limits, so two merges that overlap both contain the last chunk of one.
    isMerged = [firstChunk, lastChunk].every((chunk) => {
      const entry = view.get(chunk.key)
      return entry && (chunk.modRevision === undefined || chunk.modRevision === entry.modRevision)
    })
    return isMerged ? [{ put: key, value, expiresAtMs }, ...chunks.map((chunk) => ({ delete: chunk.key }))] : []
  })
  return isMerged
}

/** Returns the oldest chunks, at least one, within the limits of a merge. */
function firstOf(entries: readonly Entry[]): readonly Entry[] {
  let bytes = 0
  const end = entries.findIndex(({ value }) => {
    bytes += value.length
    return bytes > MERGED_BYTES_MAX
  })
  return entries.slice(0, Math.min(end < 0 ? entries.length : Math.max(1, end), MERGED_CHUNKS_MAX))
}

const linesOf = (value: Uint8Array): string[] => textOf(value).trimEnd().split('\n')
const bytesOfLines = (lines: readonly string[]): Buffer => Buffer.from(`${lines.join('\n')}\n`)

/** Returns the values as one, without a copy if they are next to each other in memory. */
function joinBytes(values: readonly Uint8Array[]): Uint8Array {
  const { buffer, byteOffset } = values[0]!
  let end = byteOffset
  for (const value of values) {
    if (value.buffer !== buffer || value.byteOffset !== end) return Buffer.concat(values)
    end += value.length
  }
  return new Uint8Array(buffer, byteOffset, end - byteOffset)
}

const textOf = (value: Uint8Array): string =>
  Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8')

/** Returns the time of the last record. */
function timeOfChunk(value: Uint8Array): number {
  const lastLineStart = value.lastIndexOf(LINE_FEED, value.length - 2) + 1
  const firstLine = textOf(value.subarray(0, value.indexOf(LINE_FEED)))
  return timeInLine(textOf(value.subarray(lastLineStart)), firstLine)
}

const LINE_FEED = 0x0a

/** Limits the records of each owner. Lines are decoded only if an owner has too many. */
function limitLines(
  lines: readonly string[],
  volumeRecordsMax: number,
): { readonly lines: readonly string[]; readonly droppedRecords: number } {
  const counts = new Map<string, number>()
  let isExceeded = false
  for (const line of lines) {
    const owner = ownerInLine(line)
    if (owner === undefined) continue
    const count = (counts.get(owner) ?? 0) + 1
    counts.set(owner, count)
    if (count > volumeRecordsMax) isExceeded = true
  }
  if (!isExceeded) return { lines, droppedRecords: 0 }
  const limited = limitRecords(decodeRecords(lines.join('\n')), volumeRecordsMax)
  return { lines: limited.records.map((record) => JSON.stringify(record)), droppedRecords: limited.droppedRecords }
}

/** Replaces the oldest records of each owner beyond the limit with one record that has their number. */
export function limitRecords(
  records: readonly JournalRecord[],
  volumeRecordsMax: number,
): { readonly records: readonly JournalRecord[]; readonly droppedRecords: number } {
  const counts = new Map<string, number>()
  for (const record of records) counts.set(ownerOf(record), (counts.get(ownerOf(record)) ?? 0) + 1)
  const drops = new Map<string, { atMs: number; count: number }>()
  const remaining = records.filter((record) => {
    const owner = ownerOf(record)
    const excessCount = (counts.get(owner) ?? 0) - volumeRecordsMax
    const isCreation = isChange(record) && record.verb === 'create'
    if (excessCount <= 0 || isCreation) return true
    counts.set(owner, volumeRecordsMax + excessCount - 1)
    const drop = drops.get(owner) ?? { atMs: 0, count: 0 }
    drops.set(owner, { atMs: timeOf(record), count: drop.count + ('dropped' in record ? record.count : 1) })
    return false
  })
  return {
    records: [...remaining, ...[...drops].map(([dropped, { atMs, count }]) => ({ atMs, dropped, count }))],
    droppedRecords: records.length - remaining.length,
  }
}

/** Deletes the oldest segments beyond the limits. Returns their number. */
async function deleteExcess(
  store: Store,
  segments: ReadonlyMap<string, number>,
  limits: JournalLimits,
): Promise<number> {
  let bytes = [...segments.values()].reduce((sum, size) => sum + size, 0)
  let count = segments.size
  const excessKeys: string[] = []
  for (const key of [...segments.keys()].sort()) {
    if (bytes <= limits.bytes && count <= limits.segments) break
    excessKeys.push(key)
    bytes -= segments.get(key)!
    count--
  }
  for (let index = 0; index < excessKeys.length; index += MERGED_CHUNKS_MAX) {
    const keys = excessKeys.slice(index, index + MERGED_CHUNKS_MAX)
    await store.transact(() => keys.map((key) => ({ delete: key })))
  }
  return excessKeys.length
}

function registerMetrics({ journal, registry }: MaintainOptions, segments: ReadonlyMap<string, number>) {
  const registers = [registry]
  new Counter({
    name: 'stowage_journal_records_total',
    help: 'Records of the journal of volumes, by type: change, activity of a component, or lost (activities that were dropped because too many waited to be written).',
    labelNames: ['type'],
    registers,
    collect() {
      this.reset()
      this.inc({ type: 'change' }, journal.stats.changes)
      this.inc({ type: 'activity' }, journal.stats.activities)
      this.inc({ type: 'lost' }, journal.stats.droppedActivities)
    },
  })
  new Gauge({
    name: 'stowage_journal_bytes',
    help: 'Bytes of the merged segments of the journal of volumes.',
    registers,
    collect() {
      this.set([...segments.values()].reduce((sum, size) => sum + size, 0))
    },
  })
  const dropped = new Counter({
    name: 'stowage_journal_dropped_total',
    help: 'Dropped by a limit of the journal: records of one volume, or segments in total.',
    labelNames: ['limit'],
    registers,
  })
  for (const limit of ['volume', 'total']) dropped.inc({ limit }, 0)
  return dropped
}
