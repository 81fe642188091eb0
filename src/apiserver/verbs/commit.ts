// Several writes as one transaction: all of them or none. Each is decided by its own verb, in the given order, on the
// store as the writes before it will have left it. In-process components use it directly; commit-handler.ts serves it.
import { ApiError, badRequest, type StatusDetails } from '../../api/status-error.ts'
import { type Entry, entryOfPut, keyOfWrite, type TransactionView, type Write } from '../../store/index.ts'
import type { DeleteOptions } from '../http/options.ts'
import { decodeStored, type StoredObjects } from '../objects/stored-object.ts'
import { type Decided, keyOf, type ObjectDeps, type WriteTarget, type Written } from '../objects/write-deps.ts'
import { tellingRefusals } from '../refusal-events.ts'
import { decideBinding } from './bind.ts'
import { decideCreate } from './create.ts'
import { decideDelete } from './delete.ts'
import { decideUpdate, type Update } from './update.ts'

/** A commit with more writes is refused; the store would hold everyone else up for too long. */
export const COMMIT_WRITES_MAX = 500

/** One write, its body decoded and checked as far as that goes without the store. */
export type ObjectWriteVerb =
  | { readonly do: 'create'; readonly target: WriteTarget; readonly body: any }
  | { readonly do: 'bind'; readonly target: WriteTarget; readonly body: any }
  | { readonly do: 'update'; readonly target: WriteTarget; readonly update: Update }
  | { readonly do: 'delete'; readonly target: WriteTarget; readonly options: DeleteOptions }

/** What each write left behind. Fails with the error of the write that failed, which names it (see `failedAt`). */
export async function commitObjects(deps: ObjectDeps, verbs: readonly ObjectWriteVerb[]): Promise<Written[]> {
  if (verbs.length > COMMIT_WRITES_MAX) {
    throw badRequest(`a commit may hold ${COMMIT_WRITES_MAX} writes; this one has ${verbs.length}: split it`)
  }
  let steps: Step[] = []
  let writes: readonly Write[] = []
  const { revisions } = await tellingRefusals(deps, () =>
    deps.store.transact((view) => {
      const overlay = new Overlay(view, deps.objects)
      const seen: ObjectDeps = { ...deps, objects: overlay.objects }
      steps = verbs.map((verb, index) => {
        try {
          const { writes, written } = decide(seen, verb, overlay)
          const [own, ...more] = writes
          if (own) overlay.checkNotReborn(own)
          for (const write of own ? [own, ...more] : more) overlay.apply(write)
          return { key: own ? keyOfWrite(own) : keyOf(verb.target), written }
        } catch (error) {
          throw failedAt(error, index)
        }
      })
      writes = overlay.writes()
      return writes
    }),
  )
  const lasts = new Map(writes.map((write, at) => [keyOfWrite(write), { write, revision: revisions[at] ?? 0 }]))
  return steps.map(({ key, written }) => asLeft(written, lasts.get(key)))
}

interface Step {
  readonly key: string
  readonly written: Written
}

/** One version is one text: where a later write of the commit changed the object again, that is what was left behind. */
function asLeft(written: Written, last: { write: Write; revision: number } | undefined): Written {
  if (!last) return written
  const { write, revision } = last
  return 'put' in write ? { ...written, value: write.value, revision } : { ...written, deleted: true, revision }
}

export function decide(deps: ObjectDeps, verb: ObjectWriteVerb, view: TransactionView): Decided {
  switch (verb.do) {
    case 'create':
      return decideCreate(deps, verb.target, verb.body, view)
    case 'bind':
      return decideBinding(deps, verb.target, verb.body, view)
    case 'update':
      return decideUpdate(deps, verb.target, verb.update, view)
    case 'delete':
      return decideDelete(deps, verb.target, verb.options, view)
  }
}

/** The error as it is, with one more cause: which write of the commit it was. */
export function failedAt(error: unknown, index: number): unknown {
  if (!(error instanceof ApiError)) return error
  const details: StatusDetails = {
    ...error.details,
    causes: [
      ...(error.details?.causes ?? []),
      { reason: 'CommitWriteFailed', message: 'this write was refused, so none was done', field: `writes[${index}]` },
    ],
  }
  const failure = new ApiError(error.code, error.reason, error.message, details, error.continueToken)
  failure.cause = error
  return failure
}

/** The store as it will be after the writes so far. */
class Overlay implements TransactionView {
  readonly objects: StoredObjects
  readonly #view: TransactionView
  readonly #entries = new Map<string, Entry | undefined>()
  readonly #writes = new Map<string, Write>()
  #version = 0

  constructor(view: TransactionView, objects: StoredObjects) {
    this.#view = view
    // Versions that exist only here are below zero, and no business of the shared memory of decoded objects.
    this.objects = { decode: (entry) => (entry.modRevision < 0 ? decodeStored(entry) : objects.decode(entry)) }
  }

  get(key: string): Entry | undefined {
    return this.#entries.has(key) ? this.#entries.get(key) : this.#view.get(key)
  }

  list(prefix: string): readonly Entry[] {
    const changed = [...this.#entries].filter(([key]) => key.startsWith(prefix))
    if (changed.length === 0) return this.#view.list(prefix)
    const entries = new Map(this.#view.list(prefix).map((entry) => [entry.key, entry]))
    for (const [key, entry] of changed) {
      if (entry) entries.set(key, entry)
      else entries.delete(key)
    }
    return [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Watchers would take an object that is deleted and created again for the old one, changed. */
  checkNotReborn(write: Write): void {
    const key = keyOfWrite(write)
    const earlier = this.#writes.get(key)
    if (earlier && 'delete' in earlier && 'put' in write) {
      throw badRequest(`one commit cannot delete "${key}" and create it again: use two`)
    }
  }

  apply(write: Write): void {
    const key = keyOfWrite(write)
    this.#version--
    const modRevision = this.#version
    const createRevision = this.get(key)?.createRevision ?? modRevision
    this.#entries.set(key, 'put' in write ? entryOfPut(write, modRevision, createRevision) : undefined)
    this.#writes.set(key, write)
  }

  /** One write per key: its last. */
  writes(): Write[] {
    return [...this.#writes.values()]
  }
}
