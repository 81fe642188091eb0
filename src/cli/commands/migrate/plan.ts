// The plan and the status of one claim of `stowage migrate`. Pure. Selection is select.ts, writing is migrate-claim.ts.
//   forward   its class is FROM: write TO      TO, by this operation: follow      another: not ours any more
//   undo      its class is TO: write FROM      FROM: follow                       another: not ours any more
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
  const isOurs = record?.id === id
  const className = classOf(claim)
  if (isUndo && !isOurs) return { do: 'leave', because: 'another operation has moved it since; left alone' }
  if (className === start) {
    const phase = claim.status?.phase ?? 'Pending'
    if (phase !== 'Bound') {
      return { do: 'refuse', because: `it is ${phase}, and only a claim that has its volume can change its class` }
    }
    return { do: 'move', to: end, record: { id, from, to, ...(isUndo ? { undo: true } : {}) } }
  }
  if (className === end && isOurs) return { do: 'follow', to: end }
  return { do: 'leave', because: `its class is ${shown(className)} by now; left alone` }
}

/** The status of a claim that moves to a class. */
export function checkMove(claim: Claim | undefined, to: string): ClaimStatus {
  if (!claim) return { is: 'failed', message: 'it was deleted' }
  if (claim.metadata.deletionTimestamp) return { is: 'failed', message: 'it is being deleted' }
  const className = classOf(claim)
  if (className !== to) {
    return { is: 'failed', message: `its class was changed to ${shown(className)} by somebody else; left alone` }
  }
  const { currentVolumeAttributesClassName: current = '', modifyVolumeStatus, conditions = [] } = claim.status ?? {}
  const said = conditions.find(({ type }) => type === 'ModifyVolumeError')?.message
  const { status, targetVolumeAttributesClassName: target = '' } = modifyVolumeStatus ?? {}
  // Some controllers leave the last attempt in the status when no class is requested any more.
  const isIdle = status === undefined || (to === '' && status !== 'InProgress')
  if (current === to && isIdle) return { is: 'done', message: `${shown(to)} is in effect` }
  if (target === to && status === 'Infeasible') {
    return { is: 'failed', message: `${withoutStop(said ?? 'the driver refuses the class')}; its volume is as it was` }
  }
  if (target !== to || status === undefined) return { is: 'working', message: 'asked for' }
  if (status === 'Pending') return { is: 'working', message: said ?? 'it cannot begin yet' }
  return { is: 'working', message: said ? `tried again: ${said}` : 'the driver is changing its volume' }
}

export const classOf = ({ spec }: Claim): string => spec?.volumeAttributesClassName ?? ''

export const shown = (className: string): string => className || 'no class'

/** So that the sentence can continue. */
const withoutStop = (text: string): string => text.replace(/\.$/, '')
