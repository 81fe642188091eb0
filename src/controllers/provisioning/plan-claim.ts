// Plans the next step for one claim. Pure. reconcile-claim.ts reads the input and applies the plan.

import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import type { Attempt, Stage } from './attempts.ts'
import { manualCleanup } from './events.ts'
import { isBeingDeleted } from './intent.ts'
import type { ProvisionRequest } from './provisioner.ts'
import { selectClaim, selectedNodeOf } from './select-claim.ts'

export type ClaimAction =
  | { readonly do: 'nothing' }
  | {
      readonly do: 'wait'
      readonly message: string
      readonly recordsEvent?: true
      readonly afterMs?: number
      /** The volume of another owner whose deletion ends the wait. */
      readonly forVolume?: string
    }
  /** Remove the intent, because the work is done or not possible. */
  | { readonly do: 'releaseIntent'; readonly next: Extract<ClaimAction, { do: 'nothing' | 'wait' }> }
  /** `isRequested` is false if the call only determines the result of an earlier attempt. */
  | { readonly do: 'provision'; readonly request: ProvisionRequest; readonly isRequested: boolean }
  | { readonly do: 'save'; readonly stage: Extract<Stage, { is: 'unsaved' }> }
  | { readonly do: 'cleanUp'; readonly stage: Extract<Stage, { is: 'unwanted' }> }

export interface ClaimSituation {
  readonly provisionerName: string
  /** The finalizer that is the intent of this provisioner (intent.ts). */
  readonly intentFinalizer: string
  readonly claim: Claim
  readonly holdsIntent: boolean
  /** The entry of the journal, if the intent is recorded there. */
  readonly entry?: string
  readonly stage: Stage
  readonly infeasible: Attempt['infeasible']
  readonly storageClass: Readonly<StorageClass> | undefined
  readonly volumeName: string
  /** The cached volume of that name. */
  readonly volume: Readonly<PersistentVolume> | undefined
  readonly nowMs: number
}

const NOTHING = { do: 'nothing' } as const

export function planClaim(situation: ClaimSituation): ClaimAction {
  const { stage, nowMs } = situation
  switch (stage.is) {
    case 'unwanted':
      return waitUntil(stage.notBeforeMs, nowMs, stage.message) ?? { do: 'cleanUp', stage }
    case 'unsaved':
      return (
        waitUntil(stage.notBeforeMs, nowMs, 'the volume is provisioned, but its PV could not be created yet') ?? {
          do: 'save',
          stage,
        }
      )
    case 'saved':
      return finish(situation, NOTHING)
    case 'unknown':
      return planUnknown(situation, stage)
    case 'nothing':
      return planNothing(situation)
  }
}

/**
 * Plans for a volume that may exist. It receives a PV even if the claim was deleted, because only a volume with a PV is
 * reclaimed.
 */
function planUnknown(situation: ClaimSituation, stage: Extract<Stage, { is: 'unknown' }>): ClaimAction {
  const { claim, provisionerName, storageClass, volumeName } = situation
  if (hasOwnVolume(situation)) return finish(situation, NOTHING)
  const selection = selectClaim(claim, storageClass, provisionerName)
  const isRequested = !isBeingDeleted(claim) && selection.is === 'selected'
  if (stage.request) return { do: 'provision', request: stage.request, isRequested }
  // Without a selected node, the storage could create a second volume instead of finding the first one.
  if (!isBeingDeleted(claim) && selection.is === 'waiting') return { do: 'wait', message: selection.message }
  if (storageClass?.provisioner === provisionerName) {
    return { do: 'provision', request: requestOf(claim, storageClass, volumeName), isRequested }
  }
  const message =
    `It is unknown whether volume "${volumeName}" exists, and the call cannot be repeated: ${classProblem(situation)}. ` +
    `${classRemedy(situation)}, or ${manualCleanup({ volumeName, intentFinalizer: situation.intentFinalizer, entry: situation.entry })}`
  return { do: 'wait', message, recordsEvent: true }
}

function classProblem({ claim, storageClass }: ClaimSituation): string {
  if (storageClass) return `class "${storageClass.metadata.name}" now names the provisioner ${storageClass.provisioner}`
  const name = claimClassName(claim)
  return name ? `class "${name}" does not exist` : 'the claim no longer names a class'
}

function classRemedy({ claim, storageClass, provisionerName }: ClaimSituation): string {
  if (storageClass) return `Recreate the class with the provisioner ${provisionerName}`
  return claimClassName(claim) ? 'Recreate the class unchanged' : 'Name the class in the claim again'
}

/** Plans for a claim for which no volume exists in the storage. */
function planNothing(situation: ClaimSituation): ClaimAction {
  const { claim, provisionerName, storageClass, volumeName, volume, infeasible, nowMs } = situation
  if (isBeingDeleted(claim) || isVolumeOf(volume, claim)) return finish(situation, NOTHING)
  const selection = selectClaim(claim, storageClass, provisionerName)
  switch (selection.is) {
    case 'notAssigned':
      return finish(situation, NOTHING)
    case 'waiting':
      return finish(situation, { do: 'wait', message: selection.message })
    case 'impossible':
      return finish(situation, { do: 'wait', message: selection.message, recordsEvent: true })
    case 'selected':
  }
  if (volume) {
    // If called with that name, the storage would return the other claim's volume.
    const owner = volume.spec?.claimRef
      ? `claim "${volume.spec.claimRef.namespace}/${volume.spec.claimRef.name}"`
      : 'no claim'
    const message =
      `volume "${volumeName}" already exists and belongs to ${owner}: recreate the claim, which has no data yet; ` +
      'or back up the data of the volume if it is needed, and delete the volume'
    return finish(situation, { do: 'wait', message, recordsEvent: true, forVolume: volumeName })
  }
  if (infeasible && infeasible.classUid === selection.storageClass.metadata.uid) {
    const waiting = waitUntil(infeasible.untilMs, nowMs, infeasible.message)
    if (waiting) return waiting
  }
  return { do: 'provision', request: requestOf(claim, selection.storageClass, volumeName), isRequested: true }
}

export const requestOf = (
  claim: Claim,
  storageClass: Readonly<StorageClass>,
  volumeName: string,
): ProvisionRequest => ({ claim, storageClass, volumeName, selectedNode: selectedNodeOf(claim) })

const finish = (
  { holdsIntent }: ClaimSituation,
  next: Extract<ClaimAction, { do: 'nothing' | 'wait' }>,
): ClaimAction => (holdsIntent ? { do: 'releaseIntent', next } : next)

const waitUntil = (untilMs: number, nowMs: number, message: string): ClaimAction | undefined =>
  nowMs < untilMs ? { do: 'wait', message, afterMs: untilMs - nowMs } : undefined

const isVolumeOf = (volume: Readonly<PersistentVolume> | undefined, { metadata: { uid } }: Claim): boolean =>
  volume !== undefined && volume.spec?.claimRef?.uid === uid

/** Whether this provisioner created the volume. Another provisioner may have created one for the same claim. */
const hasOwnVolume = ({ volume, claim, provisionerName }: ClaimSituation): boolean =>
  isVolumeOf(volume, claim) && volume?.metadata.annotations?.[PROVISIONED_BY] === provisionerName
