// Which pods are alike: a text that is equal for pods whose placing depends on the very same things. Pods of one
// deployment or job are, also when each has a claim of its own, as long as nothing has been decided about those claims.
import type { FreeVolumes } from './plugins/volume-binding/free-volumes.ts'
import type { InHand } from './plugins/volume-binding/in-hand.ts'
import { type DelayedClaim, podVolumes, type VolumeCaches } from './plugins/volume-binding/pod-volumes.ts'
import type { PodFacts } from './pod-facts.ts'

export interface LikenessFacts {
  readonly caches: VolumeCaches
  readonly free: FreeVolumes
  readonly inHand: InHand
}

/** Undefined for a pod that is like no other. */
export function likenessOf(facts: PodFacts, { caches, free, inHand }: LikenessFacts): string | undefined {
  const { nodeSelector, affinity, tolerations, containers = [] } = facts.pod.spec ?? {}
  const ports = containers.flatMap((container) => container.ports ?? [])
  const claims: unknown[] = []
  if (facts.claims.length > 0) {
    const volumes = podVolumes(facts, caches)
    if (volumes.is === 'hopeless' || volumes.bound.length > 0) return undefined
    for (const claim of volumes.delayed) {
      const isDecided =
        claim.selectedNode !== undefined || inHand.given(claim.key) || free.reservedFor(claim.key).length > 0
      if (isDecided || claim.claim.spec?.accessModes?.includes('ReadWriteOncePod')) return undefined
      claims.push(whatIsAsked(claim))
    }
  }
  return JSON.stringify([facts.priority, nodeSelector, affinity, tolerations, ports, [...facts.requests], claims])
}

function whatIsAsked({ storageClass, bytes, claim }: DelayedClaim): unknown {
  const { accessModes, volumeMode, selector, volumeAttributesClassName } = claim.spec ?? {}
  return [storageClass.metadata.name, String(bytes), accessModes, volumeMode, selector, volumeAttributesClassName]
}
