// Reads the timeline of a claim or volume from the journal. The journal has no index: it is scanned first for the
// object by its name, and then for the objects that belong to it. Lines are parsed only if they contain one of the
// searched texts.
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import type { Timeline, TimelineRequest } from '../../api/kinds/timeline/timeline-schema.ts'
import type { ListResult, Store } from '../../store/index.ts'
import {
  assembleTimeline,
  findLifetimes,
  type ObjectLifetime,
  searchedTextsOf,
  searchedTextsOfName,
} from './assemble-timeline.ts'
import { decodeRecords } from './decode-records.ts'
import type { Journal } from './journal.ts'
import { CHUNKS_PREFIX, SEGMENTS_PREFIX } from './journal-keys.ts'
import type { JournalRecord } from './journal-record.ts'

/** Entries per page, so that reading a long journal neither fills memory nor blocks the event loop. */
const PAGE_ENTRIES = 50
/** Maximum number of scans for related objects: each scan may find names and uids to search for in the next one. */
const SCANS_MAX = 3

export async function readTimeline(
  { store, journal }: { readonly store: Store; readonly journal: Journal },
  request: TimelineRequest,
): Promise<Timeline> {
  const pending = journal.pending
  const scan = async (texts: readonly string[]): Promise<JournalRecord[]> => [
    ...(await scanJournal(store, texts)),
    ...pending,
  ]
  const lifetimes = findLifetimes(await scan(searchedTextsOfName(request.name)), request)
  const lifetime: ObjectLifetime | undefined = request.uid
    ? lifetimes.find(({ uid }) => uid === request.uid)
    : lifetimes[0]
  if (!lifetime) return { otherUids: lifetimes.map(({ uid }) => uid) }
  let texts = searchedTextsOf(request, lifetime, [])
  let records: JournalRecord[] = []
  for (let count = 0; count < SCANS_MAX; count++) {
    records = await scan(texts)
    const found = searchedTextsOf(request, lifetime, records)
    if (found.length === texts.length) break
    texts = found
  }
  return {
    ...assembleTimeline(records, request, lifetime),
    uid: lifetime.uid,
    otherUids: lifetimes.flatMap(({ uid }) => (uid === lifetime.uid ? [] : [uid])),
  }
}

const decompress = promisify(inflateRaw)

/**
 * Returns the records whose line contains one of the texts, without duplicates. Chunks are read before segments, and each page
 * at the newest revision: a record that a merge moves during the scan is found at least once, and a scan that takes longer than
 * the store keeps history does not fail.
 */
async function scanJournal(store: Store, texts: readonly string[]): Promise<JournalRecord[]> {
  const chunkRecords: JournalRecord[] = []
  for await (const value of valuesOf(store, CHUNKS_PREFIX)) chunkRecords.push(...findRecords(Buffer.from(value), texts))
  const records = new Map<string, JournalRecord>()
  const add = (record: JournalRecord) => void records.set(JSON.stringify(record), record)
  for await (const value of valuesOf(store, SEGMENTS_PREFIX)) findRecords(await decompress(value), texts).forEach(add)
  chunkRecords.forEach(add) // newer than the segments
  return [...records.values()]
}

function findRecords(bytes: Buffer, texts: readonly string[]): JournalRecord[] {
  const content = bytes.toString('utf8')
  const containsAny = (line: string) => texts.some((text) => line.includes(text))
  return containsAny(content) ? decodeRecords(content, containsAny) : []
}

async function* valuesOf(store: Store, prefix: string): AsyncGenerator<Uint8Array> {
  let page: ListResult
  let afterKey: string | undefined
  do {
    page = await store.list({ prefix, limit: PAGE_ENTRIES, ...(afterKey === undefined ? {} : { afterKey }) })
    for (const { value } of page.entries) yield value
    afterKey = page.entries.at(-1)?.key
  } while (page.hasMore)
}
