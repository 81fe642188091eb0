// The plan and the status of one claim of `stowage migrate`. Pure. Selection is select.ts, writing is migrate-claim.ts.
//   forward   class FROM: write TO      class TO, by this operation: follow      another class: leave
//   undo      class TO: write FROM      class FROM: follow                       another class: leave
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { ClaimStatus } from '../../bulk/index.ts'
import { type MigrateRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

/** All claims an operation moved carry its id. */
export interface Operation {
  readonly id: string
  /** '' means no class. */
  readonly from: string
  readonly to: string
  readonly isUndo: boolean
}

/** The class that its claims have in the end. */
export const finalClassOf = ({ from, to, isUndo }: Operation): string => (isUndo ? from : to)

export type MovePlan =
  /** Write this class and record. */
  | { readonly do: 'move'; readonly to: string; readonly record: MigrateRecord }
  /** The class is written already. */
  | { readonly do: 'follow'; readonly to: string }
  /** Another client changed the class; it stays. */
  | { readonly do: 'leave'; readonly because: string }
  | { readonly do: 'refuse'; readonly because: string }

export function planMove(claim: Claim, { id, from, to, isUndo }: Operation): MovePlan {
  const [start, end] = isUndo ? [to, from] : [from, to]
  if (claim.metadata.deletionTimestamp) return { do: 'refuse', because: 'it is being deleted' }
  const record = recordOf(claim)
  const hasRecord = record?.id === id
  const className = classOf(claim)
  if (isUndo && !hasRecord) return { do: 'leave', because: 'another operation has moved it since; left unchanged' }
  if (className === start) {
    const phase = claim.status?.phase ?? 'Pending'
    if (phase !== 'Bound') {
      return { do: 'refuse', because: `it is ${phase}, and only a bound claim can change its class` }
    }
    return { do: 'move', to: end, record: { id, from, to, ...(isUndo ? { undo: true } : {}) } }
  }
  if (className === end && hasRecord) return { do: 'follow', to: end }
  return { do: 'leave', because: `its class is now ${shown(className)}; left unchanged` }
}

/** The status of a claim that moves to a class. */
export function checkMove(claim: Claim | undefined, to: string): ClaimStatus {
  if (!claim) return { is: 'failed', message: 'it was deleted' }
  if (claim.metadata.deletionTimestamp) return { is: 'failed', message: 'it is being deleted' }
  const className = classOf(claim)
  if (className !== to) {
    return { is: 'failed', message: `another client changed its class to ${shown(className)}; left unchanged` }
  }
  const { currentVolumeAttributesClassName: current = '', modifyVolumeStatus, conditions = [] } = claim.status ?? {}
  const error = conditions.find(({ type }) => type === 'ModifyVolumeError')?.message
  const { status, targetVolumeAttributesClassName: target = '' } = modifyVolumeStatus ?? {}
  // Some controllers leave the last attempt in the status when no class is requested any more.
  const isIdle = status === undefined || (to === '' && status !== 'InProgress')
  if (current === to && isIdle) return { is: 'done', message: `${shown(to)} is in effect` }
  if (target === to && status === 'Infeasible') {
    return { is: 'failed', message: `${withoutStop(error ?? 'the driver rejects the class')}; its volume is unchanged` }
  }
  if (target !== to || status === undefined) return { is: 'working', message: 'requested' }
  if (status === 'Pending') return { is: 'working', message: error ?? 'the modification is pending' }
  return { is: 'working', message: error ? `retrying: ${error}` : 'the driver is modifying the volume' }
}

export const classOf = ({ spec }: Claim): string => spec?.volumeAttributesClassName ?? ''

export const shown = (className: string): string => className || 'no class'

/** So that the sentence can continue. */
const withoutStop = (text: string): string => text.replace(/\.$/, '')
