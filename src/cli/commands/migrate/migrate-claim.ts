// Moves one claim to another class: writes the class together with the record, and checks the status. plan.ts computes the
// plan and interprets the status.
import { type Client, keyOfObject, type ObjectRef, type WriteOptions } from '../../../client/index.ts'
import {
  type Claim,
  type ClaimTask,
  changeRecord,
  type FinalStatus,
  findRejection,
  patchClaim,
  readLatestWarning,
  refOf,
  type StartResult,
  startChange,
} from '../../bulk/index.ts'
import {
  attributesClassNameOf,
  checkMove,
  classLabel,
  finalClassOf,
  identifyRejectedAttempt,
  type MovePlan,
  type Operation,
  planMove,
} from './plan.ts'
import { encodeRecord, MIGRATE_RECORD, type MigrateRecord, recordOf } from './record.ts'
import type { TargetClass } from './target-class.ts'

const FIELD_MANAGER = 'stowage-migrate'

export interface MoveTask extends ClaimTask {
  /** Returns the status if it is known before the start: already moved, changed by another client, or not movable. */
  findKnownStatus(
    target: TargetClass | undefined,
    options: { readonly isDryRun: boolean },
  ): Promise<FinalStatus | undefined>
}

export function createMoveTask(claim: Claim, operation: Operation, client: Client): MoveTask {
  const finalClass = finalClassOf(operation)
  /** The attempt that had failed when this run started. The driver may accept the next one. */
  let earlierAttempt: string | undefined
  return {
    key: keyOfObject(claim),
    async findKnownStatus(target, { isDryRun }) {
      const plan = planMove(claim, operation)
      if (plan.do === 'follow') return findMovedStatus(claim, finalClass)
      if (plan.do !== 'move') return createUnmovedStatus(plan)
      const message = target?.describeMismatch(claim)
      if (message) return { is: 'failed', message }
      return isDryRun ? findRejection(() => writeClass(client, claim, plan, { dryRun: true })) : undefined
    },
    start: (signal) =>
      startChange(client, claim, signal, (currentClaim) => {
        const plan = planMove(currentClaim, operation)
        if (plan.do === 'follow') {
          earlierAttempt = identifyRejectedAttempt(currentClaim)
          return 'follow'
        }
        return plan.do === 'move' ? () => writeClass(client, currentClaim, plan, { signal }) : createUnmovedStatus(plan)
      }),
    check(currentClaim) {
      const status = checkMove(currentClaim, finalClass)
      if (
        status.is === 'failed' &&
        currentClaim &&
        identifyRejectedAttempt(currentClaim) === earlierAttempt &&
        attributesClassNameOf(currentClaim) === finalClass
      ) {
        return { is: 'working', message: `waiting for the next attempt: ${status.message}` }
      }
      earlierAttempt = undefined
      return status
    },
    explain: () => readLatestWarning(client, refOf(claim)),
  }
}

const createUnmovedStatus = ({ do: action, message }: Extract<MovePlan, { message: string }>): FinalStatus =>
  action === 'refuse' ? { is: 'failed', message } : { is: 'nothing', message, isWithdrawn: true }

/** Returns the status of a claim that an earlier run moved, or undefined if it is still in progress. */
function findMovedStatus(claim: Claim, finalClass: string): FinalStatus | undefined {
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
    annotations: { [MIGRATE_RECORD]: encodeRecord(record) },
    spec: { volumeAttributesClassName: to || null },
  }
  const updatedClaim = await patchClaim(client, claim, patch, { fieldManager: FIELD_MANAGER, ...options })
  if (attributesClassNameOf(updatedClaim) === to) return { version: updatedClaim.metadata.resourceVersion }
  // A server with the gate disabled accepts the write and drops the class.
  return {
    is: 'failed',
    message: `the server dropped the class ${classLabel(to)}; its feature gate VolumeAttributesClass may be disabled`,
  }
}

/** Marks the record as closed, so that the next run is a new operation. Called when all claims of the operation have moved. */
export const closeRecord = (client: Client, ref: ObjectRef, { id }: Operation): Promise<void> =>
  changeRecordOf(client, ref, id, (record) => (record.closed ? undefined : encodeRecord({ ...record, closed: true })))

/** Removes the record. Called when the claim is back in its old class. */
export const removeRecord = (client: Client, ref: ObjectRef, { id }: Operation): Promise<void> =>
  changeRecordOf(client, ref, id, () => null)

function changeRecordOf(
  client: Client,
  ref: ObjectRef,
  id: string,
  change: (record: MigrateRecord) => string | null | undefined,
): Promise<void> {
  const changeIfSame = (claim: Claim) => {
    const record = recordOf(claim)
    return record?.id === id ? change(record) : undefined
  }
  return changeRecord(client, ref, MIGRATE_RECORD, changeIfSame, { fieldManager: FIELD_MANAGER })
}
