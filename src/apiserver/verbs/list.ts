// GET and LIST: what the store holds, at the version the client asked for, filtered by its selectors.
// Nothing is decoded unless a selector or the answer's form needs it.
import { EVERYTHING, matchesFields, matchesLabels } from '../../api/selectors.ts'
import { badRequest, expired, notFound, versionTooLarge } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { CompactedError, type Entry, FutureRevisionError, type ListResult, type Store } from '../../store/index.ts'
import type { ListOptions } from '../http/options.ts'
import { collectionPrefix, objectKey } from '../keys.ts'
import type { Shared, StoredObjects } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'

export interface ReadDeps {
  readonly store: Store
  readonly clock: Clock
  readonly objects: StoredObjects
}

export async function getObject(
  deps: ReadDeps,
  resource: Resource,
  namespace: string,
  name: string,
  atLeast: number,
): Promise<Entry> {
  await waitForRevision(deps, atLeast)
  const entry = await deps.store.get(objectKey(resource.stored, namespace, name))
  if (!entry) throw notFound(resource, name)
  return entry
}

export interface Listed {
  readonly entries: readonly Entry[]
  readonly revision: number
  readonly continueToken: string
  readonly remaining: number | undefined
}

/** How many entries are read at once while looking for matches of a selector. */
const FILTER_PAGE = 2_000

export async function listObjects(
  deps: ReadDeps,
  resource: Resource,
  namespace: string,
  options: ListOptions,
): Promise<Listed> {
  const prefix = collectionPrefix(resource.stored, namespace)
  const matches = selectorOf(deps, resource, options)
  const from = await startOf(deps, prefix, options)
  const read = (after: string | undefined, limit: number | undefined, atRevision: number | undefined) =>
    readPage(deps.store, { prefix, after, limit, atRevision }, options)

  if (!matches) {
    const page = await read(from.after, options.limit || undefined, from.atRevision)
    return {
      entries: page.entries,
      revision: page.revision,
      continueToken: page.more ? continueToken(page.revision, page.entries.at(-1)!.key, prefix) : '',
      remaining: page.more ? page.remaining : undefined,
    }
  }
  const entries: Entry[] = []
  let after = from.after
  let revision = from.atRevision
  for (;;) {
    const page = await read(after, FILTER_PAGE, revision)
    revision = page.revision
    for (const [index, entry] of page.entries.entries()) {
      if (!matches(deps.objects.decode(entry))) continue
      entries.push(entry)
      if (options.limit > 0 && entries.length === options.limit) {
        const isLast = !page.more && index === page.entries.length - 1
        return {
          entries,
          revision,
          continueToken: isLast ? '' : continueToken(revision, entry.key, prefix),
          remaining: undefined,
        }
      }
    }
    if (!page.more) return { entries, revision, continueToken: '', remaining: undefined }
    after = page.entries.at(-1)!.key
  }
}

/** Where a list begins and at which revision, from the version it names or the token it continues. */
async function startOf(
  deps: ReadDeps,
  prefix: string,
  options: ListOptions,
): Promise<{ after?: string; atRevision?: number }> {
  if (options.continueToken) return parseContinueToken(options.continueToken, prefix)
  const version = options.resourceVersion ?? 0
  const exact = options.match === 'Exact' || (options.match === undefined && options.limit > 0 && version > 0)
  await waitForRevision(deps, version)
  return exact ? { atRevision: version } : {}
}

async function readPage(
  store: Store,
  page: { prefix: string; after: string | undefined; limit: number | undefined; atRevision: number | undefined },
  options: ListOptions,
): Promise<ListResult> {
  try {
    return await store.list({
      prefix: page.prefix,
      ...(page.after === undefined ? {} : { after: page.after }),
      ...(page.limit === undefined ? {} : { limit: page.limit }),
      ...(page.atRevision === undefined ? {} : { atRevision: page.atRevision }),
    })
  } catch (error) {
    if (error instanceof FutureRevisionError) throw versionTooLarge(page.atRevision ?? 0, store.revision)
    if (!(error instanceof CompactedError)) throw error
    if (!options.continueToken) {
      throw expired(`The resourceVersion for the provided list is too old: ${page.atRevision} is no longer kept.`)
    }
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
        'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
        'Continuing with the provided token results in an inconsistent list - objects that were created, ' +
        'modified, or deleted between the time the first chunk was returned and now may show up in the list.',
      page.after === undefined ? '' : continueToken(NEWEST, page.after, page.prefix),
    )
  }
}

/** In a token: resume at whatever is newest when it is used. */
const NEWEST = -1

export function continueToken(revision: number, lastKey: string, prefix: string): string {
  return Buffer.from(JSON.stringify({ v: 1, rv: revision, start: lastKey.slice(prefix.length) })).toString('base64url')
}

function parseContinueToken(token: string, prefix: string): { after: string; atRevision?: number } {
  const bad = () =>
    badRequest('continue key is not valid: it was not handed out by this server for this list; start a new list')
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
  } catch {
    throw bad()
  }
  if (typeof value !== 'object' || value === null) throw bad()
  const { v, rv, start } = value as Record<string, unknown>
  if (v !== 1 || typeof start !== 'string' || start === '' || !Number.isSafeInteger(rv)) throw bad()
  const revision = rv as number
  if (revision === NEWEST) return { after: prefix + start }
  if (revision <= 0) throw bad()
  return { after: prefix + start, atRevision: revision }
}

/** Whether an object is wanted; undefined when everything is. Throws 400 for a field that cannot be selected by. */
export function selectorOf(
  deps: { objects: StoredObjects },
  resource: Resource,
  { labels, fields }: Pick<ListOptions, 'labels' | 'fields'>,
): ((object: Shared) => boolean) | undefined {
  void deps
  const selectable = selectableFields(resource)
  for (const { field } of fields) {
    if (!selectable.has(field)) {
      throw badRequest(
        `field label not supported: "${field}"; ${resource.kind.plural} can be selected by ${[...selectable.keys()].join(', ')}`,
      )
    }
  }
  const anyLabels = labels === EVERYTHING || (labels.requirements.length === 0 && !labels.nothing)
  if (anyLabels && fields.length === 0) return undefined
  return (object) => {
    if (!anyLabels && !matchesLabels(labels, object.metadata.labels)) return false
    if (fields.length === 0) return true
    const face = resource.kind.viewOf?.fromStored(object) ?? object
    return matchesFields(fields, (field) => selectable.get(field)!(face))
  }
}

const selectableCache = new WeakMap<Resource, ReadonlyMap<string, (object: any) => string>>()

function selectableFields(resource: Resource): ReadonlyMap<string, (object: any) => string> {
  let fields = selectableCache.get(resource)
  if (!fields) {
    fields = new Map<string, (object: any) => string>([
      ['metadata.name', (object) => object.metadata.name ?? ''],
      ...(resource.kind.namespaced
        ? [['metadata.namespace', (object: any) => object.metadata.namespace ?? ''] as const]
        : []),
      ...Object.entries(resource.kind.selectableFields ?? {}),
    ])
    selectableCache.set(resource, fields)
  }
  return fields
}

const FUTURE_WAIT_MS = 3_000
const FUTURE_STEP_MS = 50

/** A version this server has not seen yet may be on its way; after three seconds the client is told to come back. */
export async function waitForRevision(
  { store, clock }: Pick<ReadDeps, 'store' | 'clock'>,
  atLeast: number,
): Promise<void> {
  for (let waitedMs = 0; store.revision < atLeast; waitedMs += FUTURE_STEP_MS) {
    if (waitedMs >= FUTURE_WAIT_MS) throw versionTooLarge(atLeast, store.revision)
    await clock.sleep(FUTURE_STEP_MS)
  }
}
