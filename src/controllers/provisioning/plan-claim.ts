// What to do next for one claim, as data. Pure: the claim, what is known of its volume, and what it asks for go in.
// Doing it is reconcile-claim.ts.

import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import type { Attempt, Stage } from './attempts.ts'
import { howToGiveUp } from './events.ts'
import { isGoing } from './intent.ts'
import type { ProvisionRequest } from './provisioner.ts'
import { selectClaim, selectedNodeOf } from './select-claim.ts'

export type ClaimAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly because: string; readonly isTold?: true; readonly afterMs?: number }
  /** Takes the intent away; what was begun is over. */
  | { readonly do: 'letGo'; readonly then: Extract<ClaimAction, { do: 'nothing' | 'wait' }> }
  /** `isWanted`: the claim still asks for it. Otherwise it is only to find out what an earlier try made. */
  | { readonly do: 'provision'; readonly request: ProvisionRequest; readonly isWanted: boolean }
  | { readonly do: 'save'; readonly stage: Extract<Stage, { is: 'unsaved' }> }
  | { readonly do: 'cleanUp'; readonly stage: Extract<Stage, { is: 'unwanted' }> }

export interface ClaimSituation {
  readonly provisionerName: string
  /** The finalizer that says: something may exist. */
  readonly intent: string
  readonly claim: Claim
  readonly holdsIntent: boolean
  readonly stage: Stage
  readonly infeasible: Attempt['infeasible']
  readonly storageClass: Readonly<StorageClass> | undefined
  readonly volumeName: string
  /** The volume of that name, as the cache shows it. */
  readonly volume: Readonly<PersistentVolume> | undefined
  readonly nowMs: number
}

const NOTHING = { do: 'nothing' } as const

export function planClaim(situation: ClaimSituation): ClaimAction {
  const { stage, nowMs } = situation
  switch (stage.is) {
    case 'unwanted':
      return waitUntil(stage.notBeforeMs, nowMs, stage.because) ?? { do: 'cleanUp', stage }
    case 'unsaved':
      return (
        waitUntil(stage.notBeforeMs, nowMs, 'its volume is made and could not be saved yet') ?? { do: 'save', stage }
      )
    case 'saved':
      return overWith(situation, NOTHING)
    case 'unknown':
      return planUnknown(situation, stage)
    case 'nothing':
      return planFresh(situation)
  }
}

/** Something may exist. It gets a volume object, whatever became of the claim: then it can be reclaimed like any other. */
function planUnknown(situation: ClaimSituation, stage: Extract<Stage, { is: 'unknown' }>): ClaimAction {
  const { claim, provisionerName, storageClass, volumeName } = situation
  if (isOurVolumeOf(situation)) return overWith(situation, NOTHING)
  const selection = selectClaim(claim, storageClass, provisionerName)
  const isWanted = !isGoing(claim) && selection.is === 'selected'
  if (stage.request) return { do: 'provision', request: stage.request, isWanted }
  // Asked without a node, the storage could make what it had not made yet, and anywhere.
  if (!isGoing(claim) && selection.is === 'waiting') return { do: 'wait', because: selection.because }
  if (storageClass?.provisioner === provisionerName) {
    return { do: 'provision', request: requestOf(claim, storageClass, volumeName), isWanted }
  }
  const because =
    `It is not known whether volume "${volumeName}" was made, and it cannot be asked for: ${classProblem(situation)}. ` +
    `Create the class again as it was; or ${howToGiveUp({ volumeName, intent: situation.intent })}`
  return { do: 'wait', because, isTold: true }
}

function classProblem({ claim, storageClass }: ClaimSituation): string {
  if (storageClass) return `its class "${storageClass.metadata.name}" is one of ${storageClass.provisioner} now`
  const name = claimClassName(claim)
  return name ? `its class "${name}" is gone` : 'the claim names no class any more'
}

/** Nothing exists. */
function planFresh(situation: ClaimSituation): ClaimAction {
  const { claim, provisionerName, storageClass, volumeName, volume, infeasible, nowMs } = situation
  if (isGoing(claim) || isVolumeOf(volume, claim)) return overWith(situation, NOTHING)
  const selection = selectClaim(claim, storageClass, provisionerName)
  switch (selection.is) {
    case 'notOurs':
      return overWith(situation, NOTHING)
    case 'waiting':
      return overWith(situation, { do: 'wait', because: selection.because })
    case 'impossible':
      return overWith(situation, { do: 'wait', because: selection.because, isTold: true })
    case 'selected':
  }
  if (volume) {
    // Asked for that name, the storage would give out what is behind the other claim's volume.
    const owner = volume.spec?.claimRef
      ? `claim "${volume.spec.claimRef.namespace}/${volume.spec.claimRef.name}"`
      : 'no one'
    const because = `there is a volume "${volumeName}" already, and it belongs to ${owner}: delete it, or make the claim anew`
    return overWith(situation, { do: 'wait', because, isTold: true, afterMs: NAME_TAKEN_MS })
  }
  if (infeasible && infeasible.classUid === selection.storageClass.metadata.uid) {
    const waiting = waitUntil(infeasible.untilMs, nowMs, infeasible.because)
    if (waiting) return waiting
  }
  return { do: 'provision', request: requestOf(claim, selection.storageClass, volumeName), isWanted: true }
}

/** Nobody tells a claim that a volume of that name is gone; it is that rare. */
const NAME_TAKEN_MS = 60_000

export const requestOf = (
  claim: Claim,
  storageClass: Readonly<StorageClass>,
  volumeName: string,
): ProvisionRequest => ({ claim, storageClass, volumeName, selectedNode: selectedNodeOf(claim) })

const overWith = (
  { holdsIntent }: ClaimSituation,
  then: Extract<ClaimAction, { do: 'nothing' | 'wait' }>,
): ClaimAction => (holdsIntent ? { do: 'letGo', then } : then)

const waitUntil = (untilMs: number, nowMs: number, because: string): ClaimAction | undefined =>
  nowMs < untilMs ? { do: 'wait', because, afterMs: untilMs - nowMs } : undefined

const isVolumeOf = (volume: Readonly<PersistentVolume> | undefined, { metadata: { uid } }: Claim): boolean =>
  volume !== undefined && uid !== undefined && volume.spec?.claimRef?.uid === uid

/** Another provisioner may have saved one for the same claim: that does not account for what we may have made. */
const isOurVolumeOf = ({ volume, claim, provisionerName }: ClaimSituation): boolean =>
  isVolumeOf(volume, claim) && volume?.metadata.annotations?.[PROVISIONED_BY] === provisionerName
