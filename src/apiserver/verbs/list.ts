// GET of a collection: returns the objects that match the selectors, at the newest revision or at the one of an exact
// resourceVersion or a continue token, and in pages if there is a limit. Objects are decoded only if there is a selector.
import { badRequest, expired, resourceVersionTooLarge } from '../../api/status-error.ts'
import { CompactedError, type Entry, FutureRevisionError, type ListResult, type Store } from '../../store/index.ts'
import type { ListOptions } from '../http/options.ts'
import { collectionPrefix } from '../keys.ts'
import { selectorOf } from '../objects/selector.ts'
import { type ReadDeps, storeOf, waitForRevision } from '../objects/wait-for-revision.ts'
import type { Resource } from '../resources.ts'

export interface ListedObjects {
  readonly entries: readonly Entry[]
  readonly revision: number
  readonly continueToken: string
  readonly remainingCount: number | undefined
}

/** Number of entries per read of the store if there is a selector. */
const FILTER_PAGE_SIZE = 1_000
/** Stored bytes that are decoded and compared with the selector before the list yields to the event loop. */
const FILTER_SLICE_BYTES = 128 * 1024

export async function listObjects(
  deps: ReadDeps,
  resource: Resource,
  namespace: string,
  options: ListOptions,
): Promise<ListedObjects> {
  const prefix = collectionPrefix(resource.storedKind, namespace)
  const matches = selectorOf(resource, options)
  const store = storeOf(deps, resource)
  const start = await resolveStart({ store, clock: deps.clock }, prefix, options)
  const readFrom = (afterKey: string | undefined, limit: number | undefined, atRevision: number | undefined) =>
    readPage(store, { prefix, afterKey, limit, atRevision }, options)

  if (!matches) {
    const page = await readFrom(start.afterKey, options.limit || undefined, start.atRevision)
    return {
      entries: page.entries,
      revision: page.revision,
      continueToken: page.hasMore ? continueToken(page.revision, page.entries.at(-1)!.key, prefix) : '',
      remainingCount: page.hasMore ? page.remainingCount : undefined,
    }
  }
  const entries: Entry[] = []
  let lastKey = start.afterKey
  let revision = start.atRevision
  let sliceBytes = 0
  for (;;) {
    const page = await readFrom(lastKey, FILTER_PAGE_SIZE, revision)
    revision = page.revision
    for (const [index, entry] of page.entries.entries()) {
      sliceBytes += entry.value.length
      if (sliceBytes > FILTER_SLICE_BYTES) {
        sliceBytes = 0
        await deps.clock.nextTurn()
      }
      if (!matches(deps.objects.decode(entry))) continue
      entries.push(entry)
      if (options.limit > 0 && entries.length === options.limit) {
        const isLast = !page.hasMore && index === page.entries.length - 1
        return {
          entries,
          revision,
          continueToken: isLast ? '' : continueToken(revision, entry.key, prefix),
          remainingCount: undefined,
        }
      }
    }
    if (!page.hasMore) return { entries, revision, continueToken: '', remainingCount: undefined }
    lastKey = page.entries.at(-1)!.key
  }
}

/** Returns the key after which the list starts and its revision, from the continue token or the resourceVersion. */
async function resolveStart(
  deps: Pick<ReadDeps, 'store' | 'clock'>,
  prefix: string,
  options: ListOptions,
): Promise<{ afterKey?: string; atRevision?: number }> {
  if (options.continueToken) return parseContinueToken(options.continueToken, prefix)
  const version = options.resourceVersion ?? 0
  const isExact =
    options.resourceVersionMatch === 'Exact' ||
    (options.resourceVersionMatch === undefined && options.limit > 0 && version > 0)
  await waitForRevision(deps, version)
  return isExact ? { atRevision: version } : {}
}

async function readPage(
  store: Store,
  page: { prefix: string; afterKey: string | undefined; limit: number | undefined; atRevision: number | undefined },
  options: ListOptions,
): Promise<ListResult> {
  try {
    return await store.list(page)
  } catch (error) {
    if (error instanceof FutureRevisionError) throw resourceVersionTooLarge(page.atRevision ?? 0, store.revision)
    if (!(error instanceof CompactedError)) throw error
    if (!options.continueToken) {
      throw expired(
        `The resourceVersion for the provided list is too old: ${page.atRevision} is no longer in the history.`,
      )
    }
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
        'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
        'Continuing with the provided token results in an inconsistent list - objects that were created, ' +
        'modified, or deleted between the time the first chunk was returned and now may show up in the list.',
      page.afterKey === undefined ? '' : continueToken(NEWEST_REVISION, page.afterKey, page.prefix),
    )
  }
}

/** The revision in a continue token that continues at the newest revision. */
const NEWEST_REVISION = -1

function continueToken(revision: number, lastKey: string, prefix: string): string {
  return Buffer.from(JSON.stringify({ v: 1, rv: revision, start: lastKey.slice(prefix.length) })).toString('base64url')
}

function parseContinueToken(token: string, prefix: string): { afterKey: string; atRevision?: number } {
  const invalidToken = () =>
    badRequest('continue key is not valid: this server did not issue it for this list; start a new list')
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
  } catch {
    throw invalidToken()
  }
  if (typeof value !== 'object' || value === null) throw invalidToken()
  const { v, rv, start } = value as Record<string, unknown>
  if (v !== 1 || typeof start !== 'string' || start === '' || !Number.isSafeInteger(rv)) throw invalidToken()
  const revision = rv as number
  if (revision === NEWEST_REVISION) return { afterKey: prefix + start }
  if (revision <= 0) throw invalidToken()
  return { afterKey: prefix + start, atRevision: revision }
}
