// Handles pods with a claim whose volume is on nodes where another claim of the pod does not fit. Explains the conflict, and
// deletes claims so that all volumes can be provisioned on one node. Deletes only claims of ephemeral volumes, because the
// data of other claims must outlive the pod.

import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import { type ObjectKey, refOfKey } from '../../../client/index.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { NodeStatuses, PluginHandle } from '../../framework/plugin.ts'
import { getOrCreate } from '../../get-or-create.ts'
import { canProvision } from './node-planner.ts'
import type { BoundClaim, DelayedClaim, VolumeCaches } from './pod-volumes.ts'
import { BIND_CONFLICT, NOT_ENOUGH_SPACE } from './reasons.ts'

const NODE_NAMES_MAX = 3

/** Returns a sentence about the conflict if the delayed claims do not fit on the nodes of the bound claims. */
export function explainStrandedClaims(
  boundClaims: readonly BoundClaim[],
  delayedClaims: readonly DelayedClaim[],
  statuses: NodeStatuses,
): string | undefined {
  const pinnedClaims = boundClaims.filter(({ volume }) => volume && hasNodeAffinity(volume))
  if (pinnedClaims.length === 0 || delayedClaims.length === 0) return undefined
  const nodes: NodeInfo[] = []
  for (const [node, { reasons }] of statuses) {
    if (!pinnedClaims.every(({ volume }) => volume && isReachableFrom(volume, node))) continue
    if (!reasons.some((reason) => reason === NOT_ENOUGH_SPACE || reason === BIND_CONFLICT)) return undefined
    nodes.push(node)
  }
  if (nodes.length === 0) return undefined
  const nodeNames = nodes.slice(0, NODE_NAMES_MAX).map(({ name }) => JSON.stringify(name))
  const suffix = nodes.length > NODE_NAMES_MAX ? ` and ${nodes.length - NODE_NAMES_MAX} more` : ''
  const isSingle = pinnedClaims.length === 1
  const names = quotedNames(pinnedClaims)
  return (
    `Claim${isSingle ? '' : 's'} ${names} already ${isSingle ? 'has its volume' : 'have their volumes'} on ${nodeNames.join(', ')}${suffix}, ` +
    `where no volume is available for ${quotedNames(delayedClaims)}: ` +
    `free storage there, or delete ${names} so that all volumes are created on another node. ${dataWarning(pinnedClaims)}`
  )
}

/** Returns a warning about the data of deleted claims, which depends on the reclaim policies of their volumes. */
function dataWarning(claims: readonly BoundClaim[]): string {
  const isRetained = ({ volume }: BoundClaim) => volume?.spec?.persistentVolumeReclaimPolicy === 'Retain'
  const retainPolicyClaims = claims.filter(isRetained)
  const deletePolicyClaims = claims.filter((claim) => !isRetained(claim))
  const sentences = [
    deletePolicyClaims.length > 0 &&
      `Deleting ${quotedNames(deletePolicyClaims)} also deletes the data: back it up first.`,
    retainPolicyClaims.length > 0 &&
      `The data of ${quotedNames(retainPolicyClaims)} stays in the released storage, and new volumes are empty: copy it.`,
  ]
  return sentences.filter(Boolean).join(' ')
}

const quotedNames = (claims: readonly { readonly name: string }[]): string =>
  claims.map(({ name }) => JSON.stringify(name)).join(', ')

const hasNodeAffinity = ({ spec }: Readonly<PersistentVolume>): boolean => spec?.nodeAffinity?.required !== undefined

/**
 * Returns the sets of ephemeral claims that can be deleted and provisioned again on another node, in order of preference.
 * If the volumes are on several nodes, each set retains the claims of one node; the last set contains all claims.
 */
export function recreatableClaims(
  boundClaims: readonly BoundClaim[],
  { classes }: Pick<VolumeCaches, 'classes'>,
): ObjectKey[][] {
  const claimsByAffinity = new Map<string, ObjectKey[]>()
  for (const { isEphemeral, volume, claim, key } of boundClaims) {
    if (!isEphemeral || !volume || !hasNodeAffinity(volume)) continue
    const storageClass = classes.get(claimClassName(claim))
    if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer' || !canProvision(storageClass.provisioner)) continue
    getOrCreate(claimsByAffinity, JSON.stringify(volume.spec?.nodeAffinity?.required), () => []).push(key)
  }
  const allClaims = [...claimsByAffinity.values()].flat()
  if (claimsByAffinity.size < 2) return allClaims.length > 0 ? [allClaims] : []
  return [
    ...[...claimsByAffinity.values()].map((retainedClaims) => allClaims.filter((key) => !retainedClaims.includes(key))),
    allClaims,
  ]
}

export const deletingClaimsMessage = (keys: readonly ObjectKey[]): string =>
  `Deleting claim${keys.length === 1 ? '' : 's'} ${quotedNames(keys.map(refOfKey))}, whose volume${keys.length === 1 ? ' is' : 's are'} ephemeral, to create all volumes on a node where they fit.`

/** Deletes the claims. The ephemeral volume controller creates them again. Rejects if the server rejects a deletion. */
export async function deleteClaims(
  keys: readonly ObjectKey[],
  { client, caches, write }: Pick<PluginHandle, 'client' | 'caches' | 'write'>,
): Promise<void> {
  for (const key of keys) {
    const uid = caches.claims.get(key)?.metadata.uid
    try {
      await write(() => client.delete(persistentVolumeClaimKind, refOfKey(key), uid ? { uid } : {}))
    } catch (error) {
      const isDeleted = isNotFound(error) || isConflict(error) // a conflict means that the claim was recreated
      if (!isDeleted) throw error
    }
  }
}
