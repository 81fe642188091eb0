// Rules about stateful sets, checked at every commit.
//   identity    the pods of a set use the claims of their ordinal, and no two pods share a claim
//   order       with OrderedReady, a pod is created only after its predecessors were ready
//   retention   a claim receives no owner, and is not deleted, unless the retention policy requires it
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { keyOfObject } from '../../client/index.ts'
import type { ObjectOf } from '../engine/view.ts'
import { type CheckContext, claimsOf, isDeleting } from './context.ts'

/** The controller may not have received changes this recent. */
const PROPAGATION_MS = 120_000

type Reference = NonNullable<ObjectOf<'pod'>['metadata']['ownerReferences']>[number]

export function checkStatefulSets({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  /** When each pod was last observed ready. */
  const readyMs = new Map<string, number>()
  /** When each policy of each set was last `Delete`. */
  const deletePolicyMs = new Map<string, number>()
  /** Names of claims that the stateful sets of the workload create, such as `data-set0-1`. */
  const claimPattern = /^(data)-(set\d+)-(\d+)$/

  const isRecent = (timeMs: number | undefined) => timeMs !== undefined && simulation.nowMs - timeMs <= PROPAGATION_MS

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'set') {
        for (const set of [change.old, change.next])
          for (const policy of ['whenScaled', 'whenDeleted'] as const)
            if (set?.spec?.persistentVolumeClaimRetentionPolicy?.[policy] === 'Delete')
              deletePolicyMs.set(`${change.key} ${policy}`, simulation.nowMs)
      }
      if (change.of === 'pod' && (isReady(change.old) || isReady(change.next)))
        readyMs.set(change.key, simulation.nowMs)
    }
    for (const change of changes) {
      if (change.of === 'pod' && change.next && !change.old) checkNewPod(change.next)
      if (change.of === 'claim') checkClaim(change.key, change.old, change.next)
    }
  })

  function checkNewPod(pod: ObjectOf<'pod'>): void {
    const controller = controllerOf(pod)
    if (controller?.kind !== 'StatefulSet') return
    const key = keyOfObject(pod)
    const ordinal = ordinalOf(pod.metadata.name)
    for (const { key: claimKey } of claimsOf(pod, view)) {
      if (!claimKey.endsWith(`-${pod.metadata.name}`)) report('identity', `pod ${key} uses the claim ${claimKey}`)
      const otherPod = [...view.pods.values()].find(
        (other) =>
          other !== pod &&
          other.metadata.namespace === pod.metadata.namespace &&
          !hasTerminated(other) &&
          claimsOf(other, view).some((claim) => claim.key === claimKey),
      )
      if (otherPod) report('identity', `pods ${key} and ${keyOfObject(otherPod)} use the claim ${claimKey}`)
    }
    const set = view.sets.get(`${pod.metadata.namespace}/${controller.name}`)
    if (set?.metadata.uid !== controller.uid || set.spec?.podManagementPolicy !== 'OrderedReady') return
    for (let lower = set.spec.ordinals?.start ?? 0; lower < ordinal; lower++) {
      const lowerKey = `${pod.metadata.namespace}/${controller.name}-${lower}`
      if (isReady(view.pods.get(lowerKey)) || isRecent(readyMs.get(lowerKey))) continue
      report('order', `pod ${key} was created, but ${lowerKey} is not ready`)
    }
  }

  function checkClaim(key: string, old: ObjectOf<'claim'> | undefined, next: ObjectOf<'claim'> | undefined): void {
    const [, , setName] = claimPattern.exec(key.slice(key.indexOf('/') + 1)) ?? []
    if (!setName) return
    const setKey = `${key.slice(0, key.indexOf('/'))}/${setName}`
    const oldUids = new Set(old?.metadata.ownerReferences?.map(({ uid }) => uid))
    for (const { kind, uid } of next?.metadata.ownerReferences ?? []) {
      if (oldUids.has(uid)) continue
      const policy = kind === 'Pod' ? 'whenScaled' : 'whenDeleted'
      if (!isRecent(deletePolicyMs.get(`${setKey} ${policy}`)) && policyOf(setKey, policy) !== 'Delete')
        report('retention', `claim ${key} got an owner of kind ${kind}, although ${policy} is Retain`)
    }
    const isDeleted = old !== undefined && !isDeleting(old) && (!next || isDeleting(next))
    if (isDeleted && !old.metadata.ownerReferences?.length)
      report('retention', `claim ${key} was deleted, although it had no owner`)
  }

  const policyOf = (setKey: string, policy: 'whenScaled' | 'whenDeleted') =>
    view.sets.get(setKey)?.spec?.persistentVolumeClaimRetentionPolicy?.[policy]
}

export const controllerOf = ({ metadata }: ObjectOf<'pod'>): Reference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller)

export const ordinalOf = (podName = ''): number => Number(podName.slice(podName.lastIndexOf('-') + 1))

export const isReady = (pod: ObjectOf<'pod'> | undefined): boolean =>
  pod?.status?.phase === 'Running' &&
  (pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false)
