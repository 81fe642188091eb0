// Runs a write in its own transaction. The write is planned synchronously on a view of the store. Planning has no effect on
// the store and may run more than once.
import type { TransactionView } from '../../store/index.ts'
import { checkFences } from '../objects/check-fences.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import type { WritePlan, WriteResult, WriteVerb } from '../objects/write-verb.ts'
import { withQuotaEvents } from '../quota-events.ts'
import { planBinding } from './bind.ts'
import { planCreate } from './create.ts'
import { planDelete } from './delete.ts'
import { planUpdate } from './update.ts'

export const executeWrite = (deps: ObjectDeps, verb: WriteVerb): Promise<WriteResult> =>
  withQuotaEvents(deps, transactWrite(deps, verb))

async function transactWrite(deps: ObjectDeps, verb: WriteVerb): Promise<WriteResult> {
  let plan: WritePlan | undefined
  const { revisions } = await deps.store.transact((view) => {
    plan = planWrite(deps, verb, view)
    return verb.target.dryRun ? [] : plan.writes
  })
  const { result } = plan!
  return { ...result, revision: result.revision || (revisions[0] ?? 0) }
}

export function planWrite(deps: ObjectDeps, verb: WriteVerb, view: TransactionView): WritePlan {
  checkFences(deps, verb.target, view)
  switch (verb.do) {
    case 'create':
      return planCreate(deps, verb.target, verb.body, view)
    case 'bind':
      return planBinding(deps, verb.target, verb.binding, view)
    case 'update':
      return planUpdate(deps, verb.target, verb.update, view)
    case 'delete':
      return planDelete(deps, verb.target, verb.options, view)
  }
}
