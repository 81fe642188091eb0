// Moves one claim to another class: writes the class together with the record, and reports the status. The plan and the
// meaning of a status are plan.ts.
import { type Client, keyOfObject, type ObjectRef, type WriteOptions } from '../../../client/index.ts'
import {
  type Claim,
  type ClaimWork,
  changeRecord,
  type FinalStatus,
  latestWarning,
  patchClaim,
  refOf,
  rejectionOf,
  type StartResult,
  startClaim,
} from '../../bulk/index.ts'
import { checkMove, classOf, finalClassOf, type MovePlan, type Operation, planMove, shown } from './plan.ts'
import { MIGRATE_RECORD, type MigrateRecord, recordOf, textOfRecord } from './record.ts'
import type { TargetClass } from './target-class.ts'

const FIELD_MANAGER = 'stowage-migrate'

export interface MovingClaim extends ClaimWork {
  /** The status if it is known before the start: moved already, changed by another client, or not movable. */
  known(target: TargetClass | undefined, options: { readonly isDryRun: boolean }): Promise<FinalStatus | undefined>
}

export function movingClaim(claim: Claim, operation: Operation, client: Client): MovingClaim {
  const finalClass = finalClassOf(operation)
  return {
    key: keyOfObject(claim),
    async known(target, { isDryRun }) {
      const plan = planMove(claim, operation)
      if (plan.do === 'follow') return alreadyMoved(claim, finalClass)
      if (plan.do !== 'move') return statusWithoutMove(plan)
      const message = target?.mismatch(claim)
      if (message) return { is: 'failed', message }
      return isDryRun ? rejectionOf(() => writeClass(client, claim, plan, { dryRun: true })) : undefined
    },
    start: (signal) =>
      startClaim(client, claim, signal, (now) => {
        const plan = planMove(now, operation)
        if (plan.do === 'follow') return 'follow'
        return plan.do === 'move' ? () => writeClass(client, now, plan, { signal }) : statusWithoutMove(plan)
      }),
    check: (now) => checkMove(now, finalClass),
    explain: () => latestWarning(client, refOf(claim)),
  }
}

const statusWithoutMove = (plan: Extract<MovePlan, { because: string }>): FinalStatus => ({
  is: plan.do === 'refuse' ? 'failed' : 'nothing',
  message: plan.because,
})

/** Moved by an earlier run. */
function alreadyMoved(claim: Claim, finalClass: string): FinalStatus | undefined {
  const status = checkMove(claim, finalClass)
  return status.is === 'done' ? { is: 'nothing', message: `${status.message} already` } : undefined
}

async function writeClass(
  client: Client,
  claim: Claim,
  { to, record }: Extract<MovePlan, { do: 'move' }>,
  options: WriteOptions,
): Promise<StartResult> {
  const patch = {
    annotations: { [MIGRATE_RECORD]: textOfRecord(record) },
    spec: { volumeAttributesClassName: to || null },
  }
  const written = await patchClaim(client, claim, patch, { fieldManager: FIELD_MANAGER, ...options })
  if (classOf(written) === to) return { version: written.metadata.resourceVersion }
  // A server with the gate disabled accepts the write and drops the class.
  return {
    is: 'failed',
    message: `the server dropped the class ${shown(to)}: is its feature gate VolumeAttributesClass disabled?`,
  }
}

/** All claims have moved: a later run starts a new operation. */
export const closeRecord = (client: Client, ref: ObjectRef, { id }: Operation): Promise<void> =>
  changeRecordOf(client, ref, id, (record) => (record.closed ? undefined : textOfRecord({ ...record, closed: true })))

/** The claim is back in its old class. */
export const removeRecord = (client: Client, ref: ObjectRef, { id }: Operation): Promise<void> =>
  changeRecordOf(client, ref, id, () => null)

function changeRecordOf(
  client: Client,
  ref: ObjectRef,
  id: string,
  change: (record: MigrateRecord) => string | null | undefined,
): Promise<void> {
  const changeOwn = (claim: Claim) => {
    const record = recordOf(claim)
    return record?.id === id ? change(record) : undefined
  }
  return changeRecord(client, ref, MIGRATE_RECORD, changeOwn, { fieldManager: FIELD_MANAGER })
}
