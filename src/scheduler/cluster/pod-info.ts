// A pod with the data that the scheduler derives from it.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { type ResourceAmounts, requestsOf } from './resource-amounts.ts'

export interface PodInfo {
  readonly key: ObjectKey
  readonly uid: string
  readonly pod: Readonly<Pod>
  readonly priority: number
  readonly requests: ResourceAmounts
  readonly claims: readonly PodClaim[]
}

export interface PodClaim {
  readonly key: ObjectKey
  readonly name: string
  /** Whether the claim is created from a volumeClaimTemplate of the pod. */
  readonly isEphemeral: boolean
}

export const podInfoOf = (pod: Readonly<Pod>): PodInfo => ({
  key: keyOfObject(pod),
  uid: pod.metadata.uid ?? '',
  pod,
  priority: pod.spec?.priority ?? 0,
  requests: requestsOf(pod),
  claims: claimsOf(pod),
})

export function claimsOf({ metadata, spec }: Readonly<Pod>): readonly PodClaim[] {
  const claims = new Map<ObjectKey, PodClaim>() // two volumes may name the same claim
  for (const { name: volume, persistentVolumeClaim, ephemeral } of spec?.volumes ?? []) {
    const name = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${volume}` : undefined)
    if (name === undefined) continue
    const key = `${metadata.namespace}/${name}`
    if (!claims.has(key)) claims.set(key, { key, name, isEphemeral: !persistentVolumeClaim })
  }
  return [...claims.values()]
}
