// Several writes as one transaction: all of them or none. Each verb is planned in the given order, on the store as the
// writes before it leave it. commit-handler.ts serves commits over HTTP; in-process/client.ts calls this directly.
import { badRequest } from '../../api/status-error.ts'
import { commitWriteFailed } from '../../client/client.ts'
import { type Entry, entryOfPut, keyOfWrite, type TransactionView, type Write } from '../../store/index.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import { decodeStored, type StoredObjects } from '../objects/stored-object.ts'
import { keyOf, type WriteResult, type WriteVerb } from '../objects/write-verb.ts'
import { recordingQuotaRefusals } from '../refusal-events.ts'
import { planWrite } from './execute.ts'

/** A larger commit is rejected: it would delay all other writes for too long. */
export const COMMIT_WRITES_MAX = 500

/** The result of each write. The error of a write that fails names its index (`failedWrite`). */
export async function executeCommit(deps: ObjectDeps, verbs: readonly WriteVerb[]): Promise<WriteResult[]> {
  if (verbs.length > COMMIT_WRITES_MAX) {
    throw badRequest(`a commit takes at most ${COMMIT_WRITES_MAX} writes, and this one has ${verbs.length}: split it`)
  }
  let steps: Step[] = []
  let writes: readonly Write[] = []
  const { revisions } = await recordingQuotaRefusals(
    deps,
    deps.store.transact((view) => {
      const overlay = new Overlay(view, deps.objects)
      const overlayDeps: ObjectDeps = { ...deps, objects: overlay.objects }
      steps = mapWrites(verbs, (verb) => planStep(overlayDeps, verb, overlay))
      writes = overlay.writes()
      return writes
    }),
  )
  const lasts = new Map(writes.map((write, at) => [keyOfWrite(write), { write, revision: revisions[at] ?? 0 }]))
  return steps.map(({ key, result }) => afterCommit(result, lasts.get(key)))
}

interface Step {
  readonly key: string
  readonly result: WriteResult
}

function planStep(deps: ObjectDeps, verb: WriteVerb, overlay: Overlay): Step {
  const { writes, result } = planWrite(deps, verb, overlay)
  const [own] = writes
  if (own) overlay.checkNotRecreated(own)
  for (const write of writes) overlay.apply(write)
  return { key: own ? keyOfWrite(own) : keyOf(verb.target), result }
}

/** The object after the whole commit: a later write may have changed it again, under the same revision. */
function afterCommit(result: WriteResult, last: { write: Write; revision: number } | undefined): WriteResult {
  if (!last) return result
  const { write, revision } = last
  return 'put' in write ? { ...result, value: write.value, revision } : { ...result, deleted: true, revision }
}

/** Maps each item; an ApiError of one names its index. */
export const mapWrites = <T, R>(writes: readonly T[], map: (write: T) => R): R[] =>
  writes.map((write, index) => {
    try {
      return map(write)
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  })

/** The store after the writes planned so far. */
class Overlay implements TransactionView {
  readonly objects: StoredObjects
  readonly #view: TransactionView
  readonly #entries = new Map<string, Entry | undefined>()
  readonly #writes = new Map<string, Write>()
  #version = 0

  constructor(view: TransactionView, objects: StoredObjects) {
    this.#view = view
    // Uncommitted entries have negative revisions. They must not enter the shared cache of decoded objects.
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

  /** Watchers would see an object that is deleted and created again in one revision as a modification. */
  checkNotRecreated(write: Write): void {
    const key = keyOfWrite(write)
    const earlier = this.#writes.get(key)
    if (earlier && 'delete' in earlier && 'put' in write) {
      throw badRequest(`a commit cannot delete "${key}" and create it again: use two commits`)
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
