// A pod as the scheduler looks at it: worked out once per version, read at every decision.
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import { type Amounts, requestsOf } from './cluster/amounts.ts'

export interface PodFacts {
  readonly key: ObjectKey
  readonly uid: string
  readonly pod: Readonly<Pod>
  readonly priority: number
  readonly requests: Amounts
  readonly claims: readonly PodClaim[]
}

export interface PodClaim {
  readonly key: ObjectKey
  readonly name: string
  /** Made from the pod's own template. */
  readonly isEphemeral: boolean
}

export const podFacts = (pod: Readonly<Pod>): PodFacts => ({
  key: keyOfObject(pod),
  uid: pod.metadata.uid ?? '',
  pod,
  priority: pod.spec?.priority ?? 0,
  requests: requestsOf(pod),
  claims: claimsOf(pod),
})

function claimsOf({ metadata, spec }: Readonly<Pod>): readonly PodClaim[] {
  const claims = new Map<ObjectKey, PodClaim>() // a claim that two volumes name is one claim
  for (const { name: volume, persistentVolumeClaim, ephemeral } of spec?.volumes ?? []) {
    const name = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${volume}` : undefined)
    if (name === undefined) continue
    const key = `${metadata.namespace}/${name}`
    if (!claims.has(key)) claims.set(key, { key, name, isEphemeral: !persistentVolumeClaim })
  }
  return [...claims.values()]
}

/** Nothing of it runs any more, so it takes no room. */
export const isFinished = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'
