// Plans the next step for a volume whose only copy was on a lost node, according to the policy of its class. Pure.
//
//   policy         the claim                                                  the volume
//   wait           does not change                                            does not change
//   mark-lost      gets the condition VolumeLost                              does not change
//   delete-after   gets the condition, and is deleted once the time is up     is deleted after the claim
//
// Nothing happens before the node is lost (lostSince), and the condition is removed if the node returns or the policy becomes
// wait. If the Node object is deleted, nothing changes. A volume whose reclaim policy is not Delete and its claim are never
// deleted: for them, delete-after has the effect of mark-lost.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { lostSince } from '../../api/kinds/node/fencing.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { LostVolumePolicy } from '../../volumes/lost-volume-policy.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'

/** The condition of a claim whose volume is lost with its node. */
export const VOLUME_LOST = 'VolumeLost'

type ClaimCondition = NonNullable<NonNullable<PersistentVolumeClaim['status']>['conditions']>[number]

export interface LostVolumeFacts {
  readonly volume: Readonly<Stored<PersistentVolume>>
  /** The claim that is bound to the volume. */
  readonly claim: Readonly<Stored<PersistentVolumeClaim>> | undefined
  /** The only node on which the volume exists; undefined if there is no such node. */
  readonly node: Readonly<Stored<Node>> | undefined
  readonly policy: LostVolumePolicy
  /** A node to which the volume is still attached. */
  readonly attachedTo: string | undefined
  readonly nowMs: number
}

export type LostVolumePlan =
  /** The volume is not lost. */
  | { readonly do: 'nothing' }
  /** Write the conditions of the claim. The event has the same message. */
  | {
      readonly do: 'mark' | 'unmark'
      readonly conditions: readonly ClaimCondition[]
      readonly message: string
    }
  /** Wait for a change, or until `afterMs` have passed. */
  | { readonly do: 'wait'; readonly message: string; readonly afterMs?: number }
  | { readonly do: 'delete claim'; readonly message: string }
  /** Delete the volume, and remove the finalizers of provisioners, which cannot reach the storage. */
  | { readonly do: 'delete volume'; readonly keptFinalizers: readonly string[]; readonly message: string }

const PROVISIONER_FINALIZERS = [EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER]
const NOTHING: LostVolumePlan = { do: 'nothing' }
/** Timers are limited to 24 days; a wait of more than a day is planned again after a day. */
const WAIT_MS_MAX = 24 * 3_600_000

export function planLostVolume(facts: LostVolumeFacts): LostVolumePlan {
  const { volume, claim, node, policy, nowMs } = facts
  const lostTime = lostSince(node)
  const isMarked = claim !== undefined && conditionOf(claim) !== undefined
  // A Node that was deleted after the loss does not show whether the machine has returned.
  if (!node)
    return isMarked ? { do: 'wait', message: 'the claim is marked as lost, and the Node was deleted' } : NOTHING
  if (lostTime === undefined)
    return isMarked
      ? unmark(
          claim,
          `The volume ${volume.metadata.name} is no longer lost: the node ${node.metadata.name} has returned`,
        )
      : NOTHING
  const lossText = `the volume ${volume.metadata.name} exists only on the node ${node.metadata.name}, which is lost`
  if (policy.do === 'wait')
    return isMarked
      ? unmark(claim, `The policy for lost volumes is wait: ${lossText}, and the claim waits until the node returns`)
      : { do: 'wait', message: `${lossText}; waiting until the node returns` }
  const isRetained = volume.spec?.persistentVolumeReclaimPolicy !== 'Delete'
  // A time that cannot be read, or is in the future, makes the wait longer, never shorter.
  const lostForMs = Math.max(0, nowMs - (Date.parse(lostTime) || nowMs))
  const remainingMs = policy.do === 'delete' && !isRetained ? policy.afterMs - lostForMs : undefined
  if (claim && !claim.metadata.deletionTimestamp && !isMarked)
    return mark(claim, describeLoss(facts, lossText, isRetained), nowMs)
  if (remainingMs === undefined) return { do: 'wait', message: `${lossText}; ${describeWait(facts, isRetained)}` }
  if (remainingMs > 0)
    return {
      do: 'wait',
      message: `${lossText}; the claim and the volume are deleted in ${Math.ceil(remainingMs / 1_000)} s`,
      afterMs: Math.min(remainingMs, WAIT_MS_MAX),
    }
  return planDeletion(facts, lossText)
}

function planDeletion({ volume, claim, attachedTo }: LostVolumeFacts, lossText: string): LostVolumePlan {
  const { metadata } = volume
  if (attachedTo !== undefined)
    return { do: 'wait', message: `${lossText}; waiting until the volume is detached from the node ${attachedTo}` }
  if (claim) {
    if (!claim.metadata.deletionTimestamp) return { do: 'delete claim', message: lossText }
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`
    const finalizers = claim.metadata.finalizers?.join(', ') ?? ''
    return {
      do: 'wait',
      message: `${lossText}; waiting until the claim ${key} is deleted, which has the finalizers ${finalizers}`,
    }
  }
  const finalizers = metadata.finalizers ?? []
  const keptFinalizers = finalizers.filter((finalizer) => !PROVISIONER_FINALIZERS.includes(finalizer))
  if (metadata.deletionTimestamp && keptFinalizers.length === finalizers.length)
    return {
      do: 'wait',
      message: `${lossText}; waiting until the finalizers of the volume are removed: ${keptFinalizers.join(', ')}`,
    }
  return { do: 'delete volume', keptFinalizers, message: lossText }
}

const conditionOf = ({ status }: Readonly<PersistentVolumeClaim>): ClaimCondition | undefined =>
  status?.conditions?.find(({ type }) => type === VOLUME_LOST)

const otherConditions = ({ status }: Readonly<PersistentVolumeClaim>): ClaimCondition[] =>
  status?.conditions?.filter(({ type }) => type !== VOLUME_LOST) ?? []

function mark(claim: Readonly<PersistentVolumeClaim>, message: string, nowMs: number): LostVolumePlan {
  const lastTransitionTime = timestamp(nowMs)
  const condition = { type: VOLUME_LOST, status: 'True' as const, reason: 'NodeLost', message, lastTransitionTime }
  return { do: 'mark', conditions: [...otherConditions(claim), condition], message }
}

const unmark = (claim: Readonly<PersistentVolumeClaim>, message: string): LostVolumePlan => ({
  do: 'unmark',
  conditions: otherConditions(claim),
  message,
})

function describeLoss({ claim, policy, node, volume }: LostVolumeFacts, lossText: string, isRetained: boolean): string {
  const sentence = `${lossText[0]!.toUpperCase()}${lossText.slice(1)}.`
  const recreate = `kubectl -n ${claim?.metadata.namespace} delete pvc ${claim?.metadata.name}`
  if (policy.do === 'delete' && !isRetained) {
    const atMs = Date.parse(lostSince(node) ?? '') + policy.afterMs
    const time = Number.isFinite(atMs) ? timestamp(atMs) : `${policy.after} after the loss`
    return `${sentence} Unless the node returns, the claim and the volume are deleted at ${time}. To recreate the claim now: ${recreate}`
  }
  const retention =
    policy.do === 'delete' ? ` The volume's reclaim policy is ${reclaimPolicyOf(volume)}, so nothing is deleted.` : ''
  return `${sentence}${retention} To recreate the claim with an empty volume or from a backup: ${recreate}`
}

const reclaimPolicyOf = ({ spec }: Readonly<PersistentVolume>): string =>
  spec?.persistentVolumeReclaimPolicy ?? 'Retain'

function describeWait({ claim, volume }: LostVolumeFacts, isRetained: boolean): string {
  if (claim?.metadata.deletionTimestamp) return 'the claim is being deleted'
  if (claim) return 'the claim is marked as lost'
  if (isRetained) return `the reclaim policy of the volume is ${reclaimPolicyOf(volume)}`
  return volume.metadata.deletionTimestamp
    ? 'the volume is being deleted, and the driver deletes the storage if the node returns'
    : 'the claim was deleted, and the driver deletes the storage if the node returns'
}
