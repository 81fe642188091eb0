// Pods whose claims exclude each other: one is bound where another does not fit. Explains the situation, and finds claims
// that can be deleted so that all volumes are provisioned where everything fits: only claims created for the pod's own
// ephemeral volumes, because any other claim holds the user's data.

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

const NODES_NAMED_MAX = 3

export function explainStranded(
  bound: readonly BoundClaim[],
  delayed: readonly DelayedClaim[],
  statuses: NodeStatuses,
): string | undefined {
  const local = bound.filter(({ volume }) => volume && hasNodeAffinity(volume))
  if (local.length === 0 || delayed.length === 0) return undefined
  const reaching: NodeInfo[] = []
  for (const [node, { reasons }] of statuses) {
    if (!local.every(({ volume }) => volume && isReachableFrom(volume, node))) continue
    if (!reasons.some((reason) => reason === NOT_ENOUGH_SPACE || reason === BIND_CONFLICT)) return undefined
    reaching.push(node)
  }
  if (reaching.length === 0) return undefined
  const where = reaching.slice(0, NODES_NAMED_MAX).map(({ name }) => JSON.stringify(name))
  const more = reaching.length > NODES_NAMED_MAX ? ` and ${reaching.length - NODES_NAMED_MAX} more` : ''
  const [isOne, names] = [local.length === 1, quotedNames(local)]
  return (
    `Claim${isOne ? '' : 's'} ${names} already ${isOne ? 'has its volume' : 'have their volumes'} on ${where.join(', ')}${more}, ` +
    `where no volume is available for ${quotedNames(delayed)}: ` +
    `free storage there, or delete ${names} so that all volumes are created on another node.`
  )
}

const quotedNames = (claims: readonly { readonly name: string }[]): string =>
  claims.map(({ name }) => JSON.stringify(name)).join(', ')

const hasNodeAffinity = ({ spec }: Readonly<PersistentVolume>): boolean => spec?.nodeAffinity?.required !== undefined

/**
 * Sets of the pod's ephemeral claims that can be deleted and provisioned again on another node, best first. If their
 * volumes are in several places, those of one place may stay; deleting all of them comes last.
 */
export function recreatableClaims(
  bound: readonly BoundClaim[],
  { classes }: Pick<VolumeCaches, 'classes'>,
): ObjectKey[][] {
  const places = new Map<string, ObjectKey[]>()
  for (const { isEphemeral, volume, claim, key } of bound) {
    if (!isEphemeral || !volume || !hasNodeAffinity(volume)) continue
    const storageClass = classes.get(claimClassName(claim) ?? '')
    if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer' || !canProvision(storageClass.provisioner)) continue
    getOrCreate(places, JSON.stringify(volume.spec?.nodeAffinity?.required), () => []).push(key)
  }
  const all = [...places.values()].flat()
  if (places.size < 2) return all.length > 0 ? [all] : []
  return [...[...places.values()].map((staying) => all.filter((key) => !staying.includes(key))), all]
}

export const deletingClaims = (keys: readonly ObjectKey[]): string =>
  `Deleting claim${keys.length === 1 ? '' : 's'} ${quotedNames(keys.map(refOfKey))}, whose volume${keys.length === 1 ? ' is' : 's are'} ephemeral, to create all volumes on a node where they fit.`

/** The ephemeral volume controller creates the claims again. */
export async function deleteClaims(
  keys: readonly ObjectKey[],
  { client, caches, log, write }: PluginHandle,
): Promise<void> {
  for (const key of keys) {
    const uid = caches.claims.get(key)?.metadata.uid
    try {
      await write(() => client.delete(persistentVolumeClaimKind, refOfKey(key), uid ? { uid } : {}))
    } catch (error) {
      const isGone = isNotFound(error) || isConflict(error) // already deleted, or replaced by another of the same name
      if (!isGone) log.warn({ err: error, claim: key }, 'deleting an ephemeral claim failed; it is retried')
    }
  }
}
