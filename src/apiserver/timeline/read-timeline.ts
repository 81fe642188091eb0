// Reads the timeline of a claim or volume from the journal. The journal has no index: it is scanned first for the
// object by its name, and then for the objects that belong to it. Lines are parsed only if they contain one of the
// searched texts.
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import type { Timeline, TimelineRequest } from '../../api/kinds/timeline/timeline-schema.ts'
import type { Revision, Store } from '../../store/index.ts'
import { assembleTimeline, findLifetimes, type ObjectLifetime, searchedTextsOf } from './assemble-timeline.ts'
import type { Journal } from './journal.ts'
import { CHUNKS_PREFIX, SEGMENTS_PREFIX } from './journal-keys.ts'
import { decodeLine, type JournalRecord } from './journal-record.ts'

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
  const lifetimes = findLifetimes(await scan([JSON.stringify(request.name)]), request)
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

/** Returns the records whose line contains one of the texts, without duplicates. */
async function scanJournal(store: Store, texts: readonly string[]): Promise<JournalRecord[]> {
  const lines = new Set<string>()
  const collect = (text: string) => {
    if (!texts.some((searched) => text.includes(searched))) return
    for (const line of text.split('\n')) if (texts.some((searched) => line.includes(searched))) lines.add(line)
  }
  // At one revision, because a merge moves records from chunks to a segment.
  const atRevision = store.revision
  for await (const value of valuesOf(store, SEGMENTS_PREFIX, atRevision))
    collect((await decompress(value)).toString('utf8'))
  for await (const value of valuesOf(store, CHUNKS_PREFIX, atRevision)) collect(Buffer.from(value).toString('utf8'))
  return [...lines].flatMap((line) => decodeLine(line) ?? [])
}

async function* valuesOf(store: Store, prefix: string, atRevision: Revision): AsyncGenerator<Uint8Array> {
  let after: string | undefined
  for (;;) {
    const { entries, hasMore } = await store.list({
      prefix,
      limit: PAGE_ENTRIES,
      atRevision,
      ...(after ? { after } : {}),
    })
    for (const { value } of entries) yield value
    after = entries.at(-1)?.key
    if (!hasMore || after === undefined) return
  }
}
