// A pod goes only where its volumes are, or can be had: bound ones must be reachable, existing ones are chosen, new ones
// must fit. What is decided is set aside at once, then written down (claimRef on volumes, the selected node on claims),
// and the pod waits until the binder and the provisioner have done their part.
//   pod-volumes.ts    the pod's claims        judge-node.ts    one node
//   score.ts          which node is better    binding-waits.ts until all is bound

import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { Client, ObjectKey } from '../../../client/index.ts'
import { isReservedFor, type Volume } from '../../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER, SELECTED_NODE } from '../../../volumes/names.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { Reservations, WantedVolume } from '../../capacity/reservations.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { INDIFFERENT, type Judgement, type Plugin, type Reserved } from '../../plugin.ts'
import type { PodFacts } from '../../pod-facts.ts'
import { BindingFailed, type BindingWaits } from './binding-waits.ts'
import type { FailedPlaces } from './failed-places.ts'
import type { InHand } from './in-hand.ts'
import { type JudgeFacts, NodeJudge, type NodePlan } from './judge-node.ts'
import { type BoundClaim, podVolumes, type VolumeCaches } from './pod-volumes.ts'
import { duringBinding, REASON_NO_SPACE } from './reasons.ts'
import { scoreOf } from './score.ts'
import { explainTrap, waysOut } from './trapped.ts'

export const VOLUME_BINDING = 'VolumeBinding'

export interface VolumeBindingDeps extends JudgeFacts {
  readonly client: Client
  readonly caches: VolumeCaches
  readonly waits: BindingWaits
  readonly failedPlaces: FailedPlaces
  readonly bindTimeoutMs: number
  /** Runs a write when it is its turn: only so many are under way at once. */
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  /** These claims are undecided again, and existing volumes of these classes are free again. */
  readonly onReleased: (released: { claims: readonly ObjectKey[]; classNames: readonly string[] }) => void
  readonly onError: (stage: 'predicate' | 'assume' | 'bind') => void
}

export interface VolumeBinding extends Plugin {
  /** As if these of its claims had no volume yet. */
  prepareWithout(pod: PodFacts, claims: ReadonlySet<ObjectKey>): Judgement
  /** Sets of claims made for the pod alone, any of which it could give back not to be tied to where they are. */
  waysOut(pod: PodFacts): readonly (readonly ObjectKey[])[]
}

export function createVolumeBinding(deps: VolumeBindingDeps): VolumeBinding {
  const { caches, capacity, failedPlaces } = deps

  function prepare(pod: PodFacts, asIfUnbound?: ReadonlySet<ObjectKey>): Judgement {
    if (pod.claims.length === 0) return INDIFFERENT
    const volumes = podVolumes(pod, caches, asIfUnbound)
    if (volumes.is === 'hopeless') return volumes
    const { bound, delayed } = volumes
    // Given back for another try in vain, volumes would be made and deleted over and over.
    const facts = asIfUnbound ? { ...deps, capacity: { ...capacity, isTogether: true } } : deps
    const judge = new NodeJudge(facts, bound, delayed)
    const avoided = failedPlaces.of([pod.uid, ...delayed.map(({ claim }) => claim.metadata.uid ?? '')])
    return {
      is: 'judge',
      refuses: (node) => judge.judge(node),
      ...(avoided ? { avoids: ({ name }) => avoided.has(name) } : {}),
      ...(delayed.length > 0
        ? {
            scores: (nodes) => nodes.map((node) => scoreOf(judge.planFor(node), capacity.reservations)),
            reserve: (node) => reserve(deps, pod, node, judge.planFor(node), bound),
          }
        : {}),
      explains(refusals) {
        const isShort = [...refusals.values()].some((reasons) => reasons.includes(REASON_NO_SPACE))
        const sentences = [isShort ? judge.shortage() : undefined, explainTrap(bound, delayed, refusals)]
        return sentences.filter(Boolean).join(' ') || undefined
      },
    }
  }

  return {
    name: VOLUME_BINDING,
    weight: 1,
    prepare: (pod) => prepare(pod),
    prepareWithout: prepare,
    waysOut(pod) {
      const volumes = podVolumes(pod, caches)
      return volumes.is === 'known' ? waysOut(volumes.bound, caches) : []
    },
  }
}

function reserve(
  deps: VolumeBindingDeps,
  pod: PodFacts,
  node: NodeView,
  plan: NodePlan,
  bound: readonly BoundClaim[],
): Reserved {
  setAside(plan, pod.key, node.name, deps.inHand, deps.capacity.reservations)
  return {
    async commit() {
      const { waits, bindTimeoutMs: timeoutMs } = deps
      try {
        await writeDown(deps, plan, node.name)
        await waits.until({ podKey: pod.key, nodeName: node.name, plan, bound, timeoutMs })
      } catch (error) {
        deps.onError('bind')
        if (error instanceof BindingFailed && error.isPlaceFault) {
          notePlaceFault(deps, pod, node, plan)
        }
        throw new Error(duringBinding(error instanceof Error ? error.message : String(error)), { cause: error })
      }
    },
    release() {
      for (const { claim } of [...plan.bind, ...plan.make]) {
        deps.inHand.takeBack(claim.key, pod.key)
        deps.capacity.reservations?.giveUp(claim.key)
      }
      const undecided = [...plan.bind, ...plan.make].filter(({ claim }) => isUndecided(claim.key, deps.caches))
      const isFree = ({ metadata: { name = '' } }: Volume) => !deps.caches.volumes.get(name)?.spec?.claimRef
      const freed = plan.bind.filter(({ volume }) => isFree(volume))
      if (undecided.length + freed.length === 0) return
      deps.onReleased({
        claims: undecided.map(({ claim }) => claim.key),
        classNames: freed.map(({ claim }) => claim.storageClass.metadata.name ?? ''),
      })
    },
  }
}

function isUndecided(claimKey: ObjectKey, { claims }: VolumeCaches): boolean {
  const claim = claims.get(claimKey)
  return claim !== undefined && !claim.spec?.volumeName && !annotationOf(claim, SELECTED_NODE)
}

function setAside(
  { bind, make }: NodePlan,
  podKey: ObjectKey,
  nodeName: string,
  inHand: InHand,
  reservations: Reservations | undefined,
): void {
  for (const { claim, volume } of bind) {
    inHand.give(claim.key, { nodeName, podKey, volume: volume.metadata.name ?? '' })
  }
  for (const one of make) {
    inHand.give(one.claim.key, { nodeName, podKey })
    const wanted = wantedOf(one)
    if (wanted) reservations?.assume(wanted)
  }
}

/** As it is told to reservations; undefined where nobody reports capacity. */
function wantedOf({ claim, report }: NodePlan['make'][number]): WantedVolume | undefined {
  if (!report) return undefined
  const { uid: claimUid = '' } = claim.claim.metadata
  return { claimKey: claim.key, claimUid, driver: claim.storageClass.provisioner, bytes: claim.bytes, report }
}

/** The pod goes elsewhere first; and where a volume was made in another place, this one had no room. */
function notePlaceFault(deps: VolumeBindingDeps, pod: PodFacts, node: NodeView, { make }: NodePlan): void {
  deps.failedPlaces.note(pod.uid, node.name)
  for (const one of make) {
    deps.failedPlaces.note(one.claim.claim.metadata.uid ?? '', node.name)
    const volume = deps.caches.volumes.get(deps.caches.claims.get(one.claim.key)?.spec?.volumeName ?? '')
    const wanted = wantedOf(one)
    if (wanted && volume && !isReachableFrom(volume, node)) deps.capacity.reservations?.madeElsewhere(wanted)
  }
}

/**
 * Volumes first, then claims; each write holds for the version that was judged. One that fails leaves those before it
 * standing: they say no more than that a volume belongs to its claim, or where the claim's pod is to go.
 */
async function writeDown({ client, caches, write }: VolumeBindingDeps, { bind, make }: NodePlan, nodeName: string) {
  for (const { claim, volume } of bind) {
    const { namespace, name, uid, resourceVersion } = claim.claim.metadata
    if (volume.spec?.claimRef?.uid === uid) continue
    const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
    const isOurChoice = !isReservedFor(volume, claim.claim)
    const annotations = isOurChoice ? { annotations: { [BOUND_BY_CONTROLLER]: 'yes' } } : {}
    const metadata = { uid: volume.metadata.uid, resourceVersion: volume.metadata.resourceVersion, ...annotations }
    const body = { metadata, spec: { claimRef } }
    const ref = { name: volume.metadata.name ?? '' }
    caches.volumes.learn(await write(() => client.patch(persistentVolumeKind, ref, { type: 'merge', body })))
  }
  for (const { claim } of make) {
    if (claim.selectedNode === nodeName) continue
    const { namespace, name = '', uid, resourceVersion } = claim.claim.metadata
    const body = { metadata: { uid, resourceVersion, annotations: { [SELECTED_NODE]: nodeName } } }
    const ref = { name, ...(namespace ? { namespace } : {}) }
    caches.claims.learn(await write(() => client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })))
  }
}
