// Computes the plan and the status of one claim of `stowage migrate`. Pure. select.ts selects claims, migrate-claim.ts writes.
//   forward   class FROM: write TO     class TO with the operation's record: follow     otherwise: leave
//   undo      class TO: write FROM     class FROM: follow                               otherwise: leave
// Undo also leaves claims without the operation's record. Claims that are being deleted, or whose class cannot be written
// because they are not bound, are refused.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { ClaimStatus } from '../../bulk/index.ts'
import { type MigrateRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

/** An operation on many claims. The records on its claims have its id. */
export interface Operation {
  readonly id: string
  /** Empty if the claims have no class. */
  readonly from: string
  readonly to: string
  readonly isUndo: boolean
}

/** Returns the class that the claims have when the operation is complete. */
export const finalClassOf = ({ from, to, isUndo }: Operation): string => (isUndo ? from : to)

export type MovePlan =
  /** Write this class and record. */
  | { readonly do: 'move'; readonly to: string; readonly record: MigrateRecord }
  /** The class is already written: wait for it. */
  | { readonly do: 'follow'; readonly to: string }
  /** The class or the record is no longer that of the operation: do not change the claim. */
  | { readonly do: 'leave'; readonly message: string }
  /** The claim cannot change its class. */
  | { readonly do: 'refuse'; readonly message: string }

export function planMove(claim: Claim, { id, from, to, isUndo }: Operation): MovePlan {
  const [startClass, endClass] = isUndo ? [to, from] : [from, to]
  if (claim.metadata.deletionTimestamp) return { do: 'refuse', message: 'the claim is being deleted' }
  const record = recordOf(claim)
  const isRecordOfOperation = record?.id === id
  const className = attributesClassNameOf(claim)
  if (isUndo && !isRecordOfOperation)
    return { do: 'leave', message: 'the claim no longer has the record of this operation; left unchanged' }
  if (className === startClass) {
    const phase = claim.status?.phase ?? 'Pending'
    if (phase !== 'Bound') {
      return { do: 'refuse', message: `the claim is ${phase}, and only a bound claim can change its class` }
    }
    return { do: 'move', to: endClass, record: { id, from, to, ...(isUndo ? { undo: true } : {}) } }
  }
  if (className === endClass && isRecordOfOperation) return { do: 'follow', to: endClass }
  return {
    do: 'leave',
    message: `${className ? `the class is now ${className}` : 'the claim no longer has a class'}; left unchanged`,
  }
}

/** Returns the status of a claim that moves to a class. */
export function checkMove(claim: Claim | undefined, to: string): ClaimStatus {
  if (!claim) return { is: 'failed', message: 'the claim was deleted', isWithdrawn: true }
  if (claim.metadata.deletionTimestamp)
    return { is: 'failed', message: 'the claim is being deleted', isWithdrawn: true }
  const className = attributesClassNameOf(claim)
  if (className !== to) {
    const change = className ? `changed the class to ${className}` : 'removed the class'
    return { is: 'failed', message: `another client ${change}; left unchanged`, isWithdrawn: true }
  }
  const {
    currentVolumeAttributesClassName: currentClass = '',
    modifyVolumeStatus,
    conditions = [],
  } = claim.status ?? {}
  const error = conditions.find(({ type }) => type === 'ModifyVolumeError')?.message
  const { status, targetVolumeAttributesClassName: targetClass = '' } = modifyVolumeStatus ?? {}
  // Some controllers leave the last attempt in the status after the request for a class was removed.
  const isIdle = status === undefined || (to === '' && status !== 'InProgress')
  if (currentClass === to && isIdle) return { is: 'done', message: `${classLabel(to)} is in effect` }
  if (targetClass === to && status === 'Infeasible') {
    return {
      is: 'failed',
      message: `${trimFullStop(error ?? 'the driver rejects the class')}; the volume is unchanged`,
    }
  }
  if (targetClass !== to || status === undefined) return { is: 'working', message: 'requested' }
  if (status === 'Pending') return { is: 'working', message: error ?? 'the modification is pending' }
  return { is: 'working', message: error ? `retrying: ${error}` : 'the driver is modifying the volume' }
}

/** Returns a text that identifies the last attempt if the driver has rejected it, otherwise undefined. */
export function identifyRejectedAttempt({ status }: Claim): string | undefined {
  if (status?.modifyVolumeStatus?.status !== 'Infeasible') return undefined
  const condition = status.conditions?.find(({ type }) => type === 'ModifyVolumeError')
  return JSON.stringify([status.modifyVolumeStatus, condition])
}

export const attributesClassNameOf = ({ spec }: Claim): string => spec?.volumeAttributesClassName ?? ''

export const classLabel = (className: string): string => className || 'no class'

/** Removes the full stop, so that the sentence can be continued. */
const trimFullStop = (text: string): string => text.replace(/\.$/, '')
