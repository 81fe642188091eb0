// Executes several writes as one transaction. The writes are planned in order, each on the result of the previous ones.
// commit-handler.ts serves commits over HTTP; in-process/client.ts calls executeCommit directly.
import { badRequest } from '../../api/status-error.ts'
import { commitWriteFailed } from '../../client/client.ts'
import {
  type Entry,
  entryOfPut,
  keyOfWrite,
  type Revision,
  type TransactionView,
  type Write,
} from '../../store/index.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import { decodeStored, type Shared, type StoredObjects } from '../objects/stored-object.ts'
import { keyOf, type WritePlan, type WriteResult, type WriteVerb } from '../objects/write-verb.ts'
import { withQuotaEvents } from '../quota-events.ts'
import type { PlannedChange } from '../timeline/journal.ts'
import { planWrite, transactJournaled } from './execute.ts'
import { UnencodedEntry, UnencodedPut } from './unencoded-put.ts'

/** Maximum number of writes in a commit. A larger commit would delay other writes for too long. */
export const COMMIT_WRITES_MAX = 500

/** Returns the result of each write. The error of a failed write contains its index. */
export async function executeCommit(deps: ObjectDeps, verbs: readonly WriteVerb[]): Promise<WriteResult[]> {
  if (verbs.length > COMMIT_WRITES_MAX) {
    throw badRequest(`a commit may have at most ${COMMIT_WRITES_MAX} writes; this one has ${verbs.length}: split it`)
  }
  let commit: PlannedCommit = { writes: [], changes: [] }
  const { revisions } = await withQuotaEvents(
    deps,
    transactJournaled(deps, (view) => {
      commit = planCommit(deps, verbs, view)
      return commit
    }),
  )
  return resultsOf(commit, revisions)
}

interface PlannedCommit {
  readonly writes: readonly Write[]
  readonly changes: readonly PlannedStep[]
}

interface PlannedStep extends PlannedChange {
  readonly key: string
}

// This file and the files of the verbs have few closures per write: V8 drops the optimized code of a closure in each full
// garbage collection, because no closure is alive then, and compiles it again.
function planCommit(deps: ObjectDeps, verbs: readonly WriteVerb[], view: TransactionView): PlannedCommit {
  if (verbs.length === 1) return planSingleWrite(deps, verbs[0]!, view)
  const overlay = new Overlay(view, deps.objects)
  const overlayDeps: ObjectDeps = { ...deps, objects: overlay.objects }
  const changes: PlannedStep[] = []
  for (let index = 0; index < verbs.length; index++) {
    try {
      changes.push(planStep(overlayDeps, verbs[index]!, overlay, isFollowed(verbs, index)))
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  }
  return { writes: overlay.writes(), changes }
}

/** Plans the write without an overlay, because no other write of the commit depends on it. */
function planSingleWrite(deps: ObjectDeps, verb: WriteVerb, view: TransactionView): PlannedCommit {
  try {
    const step = plannedStep(verb, planWrite(deps, verb, view))
    return { writes: step.plan.writes, changes: [step] }
  } catch (error) {
    throw commitWriteFailed(error, 0)
  }
}

function resultsOf({ writes, changes }: PlannedCommit, revisions: readonly Revision[]): WriteResult[] {
  const indexes = new Map<string, number>()
  for (let index = 0; index < writes.length; index++) indexes.set(keyOfWrite(writes[index]!), index)
  const results: WriteResult[] = []
  for (const { key, plan } of changes) {
    const index = indexes.get(key)
    results.push(index === undefined ? plan.result : withFinalWrite(plan.result, writes[index]!, revisions[index] ?? 0))
  }
  return results
}

/** Whether the next write updates the object of this one again, so that its state in between need not be encoded. */
function isFollowed(verbs: readonly WriteVerb[], index: number): boolean {
  const [verb, next] = [verbs[index]!, verbs[index + 1]]
  if (next?.do !== 'update' || verb.do === 'delete') return false
  const { resource, namespace, name } = next.target
  return verb.target.resource === resource && verb.target.namespace === namespace && nameOf(verb) === name
}

/** Returns undefined if the server generates the name. */
const nameOf = (verb: WriteVerb): string | undefined =>
  verb.target.name || (verb.do === 'create' ? verb.body.metadata.name : undefined)

function planStep(deps: ObjectDeps, verb: WriteVerb, overlay: Overlay, followed: boolean): PlannedStep {
  const plan = planWrite(deps, verb, overlay, followed)
  const { writes } = plan
  if (writes[0]) overlay.checkNotRecreated(writes[0])
  for (const write of writes) overlay.apply(write)
  return plannedStep(verb, plan)
}

function plannedStep({ target }: WriteVerb, plan: WritePlan): PlannedStep {
  const objectWrite = plan.writes[0]
  return { key: objectWrite ? keyOfWrite(objectWrite) : keyOf(target), target, plan }
}

/** Returns the result with the state after the commit, because a later write may have changed the object again. */
function withFinalWrite(result: WriteResult, write: Write, revision: Revision): WriteResult {
  return 'put' in write ? { ...result, value: write.value, revision } : { ...result, deleted: true, revision }
}

/** Maps each write. If `map` throws an ApiError, adds the index of the write to it. */
export const mapWrites = <T, R>(writes: readonly T[], map: (write: T, index: number) => R): R[] =>
  writes.map((write, index) => {
    try {
      return map(write, index)
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  })

/** Decodes without the shared cache what must not be added to it: uncommitted entries, which have negative revisions. */
class OverlayObjects implements StoredObjects {
  readonly #objects: StoredObjects

  constructor(objects: StoredObjects) {
    this.#objects = objects
  }

  decode(entry: Entry): Shared {
    if (entry instanceof UnencodedEntry) return entry.write.object
    return entry.modRevision < 0 ? decodeStored(entry) : this.#objects.decode(entry)
  }

  decodeOnce(entry: Entry): Shared {
    return entry.modRevision < 0 ? this.decode(entry) : this.#objects.decodeOnce(entry)
  }
}

/** A view of the store that includes the writes planned so far. */
class Overlay implements TransactionView {
  readonly objects: StoredObjects
  readonly #view: TransactionView
  readonly #entries = new Map<string, Entry | undefined>()
  readonly #writes = new Map<string, Write>()
  #version = 0

  constructor(view: TransactionView, objects: StoredObjects) {
    this.#view = view
    this.objects = new OverlayObjects(objects)
  }

  get(key: string): Entry | undefined {
    return this.#entries.has(key) ? this.#entries.get(key) : this.#view.get(key)
  }

  list(prefix: string): readonly Entry[] {
    const changedEntries = [...this.#entries].filter(([key]) => key.startsWith(prefix))
    if (changedEntries.length === 0) return this.#view.list(prefix)
    const entries = new Map(this.#view.list(prefix).map((entry) => [entry.key, entry]))
    for (const [key, entry] of changedEntries) {
      if (entry) entries.set(key, entry)
      else entries.delete(key)
    }
    return [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Rejects deleting and creating an object in one commit, which watchers would receive as a modification. */
  checkNotRecreated(write: Write): void {
    const key = keyOfWrite(write)
    const previousWrite = this.#writes.get(key)
    if (previousWrite && 'delete' in previousWrite && 'put' in write) {
      throw badRequest(`a commit cannot delete "${key}" and create it again: use two commits`)
    }
  }

  apply(write: Write): void {
    const key = keyOfWrite(write)
    this.#version--
    const modRevision = this.#version
    const createRevision = this.get(key)?.createRevision ?? modRevision
    this.#entries.set(key, entryOfWrite(write, modRevision, createRevision))
    this.#writes.set(key, write)
  }

  /** Returns the last write of each key. */
  writes(): Write[] {
    return [...this.#writes.values()]
  }
}

function entryOfWrite(write: Write, modRevision: Revision, createRevision: Revision): Entry | undefined {
  if ('delete' in write) return undefined
  if (write instanceof UnencodedPut) return new UnencodedEntry(write, modRevision, createRevision)
  return entryOfPut(write, modRevision, createRevision)
}
