// Runs a write in its own transaction. The write is planned synchronously on a view of the store. Planning has no effect on
// the store and may run more than once.
import type { TransactionResult, TransactionView, Write } from '../../store/index.ts'
import { checkFences } from '../objects/check-fences.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import type { WritePlan, WriteResult, WriteVerb } from '../objects/write-verb.ts'
import { withQuotaEvents } from '../quota-events.ts'
import type { PlannedChange } from '../timeline/journal.ts'
import { planBinding } from './bind.ts'
import { planCreate } from './create.ts'
import { planDelete } from './delete.ts'
import { planUpdate } from './update.ts'

export const executeWrite = (deps: ObjectDeps, verb: WriteVerb): Promise<WriteResult> =>
  withQuotaEvents(deps, transactWrite(deps, verb))

async function transactWrite(deps: ObjectDeps, verb: WriteVerb): Promise<WriteResult> {
  const { target } = verb
  let plan: WritePlan | undefined
  const { revisions } = await transactJournaled(deps, (view) => {
    plan = planWrite(deps, verb, view)
    return target.dryRun ? NO_WRITES : { writes: plan.writes, changes: [{ target, plan }] }
  })
  const { result } = plan!
  return { ...result, revision: result.revision || (revisions[0] ?? 0) }
}

const NO_WRITES = { writes: [], changes: [] }

interface JournaledWrites {
  readonly writes: readonly Write[]
  readonly changes: readonly PlannedChange[]
}

/** Runs a transaction that also writes the records of its changes to the journal, if there is one. */
export async function transactJournaled(
  { store, journal }: ObjectDeps,
  decide: (view: TransactionView) => JournaledWrites,
): Promise<TransactionResult> {
  if (!journal) return store.transact((view) => decide(view).writes)
  const transaction = journal.begin()
  let isCommitted = false
  try {
    const result = await store.transact((view) => {
      const { writes, changes } = decide(view)
      return transaction.withRecords(view, writes, changes)
    })
    isCommitted = true
    return result
  } finally {
    transaction.settle(isCommitted)
  }
}

/** `isFollowed` is set if the next write of the same commit updates the object again. */
export function planWrite(deps: ObjectDeps, verb: WriteVerb, view: TransactionView, isFollowed = false): WritePlan {
  checkFences(deps, verb.target, view)
  switch (verb.do) {
    case 'create':
      return planCreate(deps, verb.target, verb.body, view, { isFollowed })
    case 'bind':
      return planBinding(deps, verb.target, verb.binding, view)
    case 'update':
      return planUpdate(deps, verb.target, verb.update, view, isFollowed)
    case 'delete':
      return planDelete(deps, verb.target, verb.options, view)
  }
}
