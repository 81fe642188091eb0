// Runs one round of a simulation: admits the new objects, binds the claims that do not wait for a pod, and places the pods.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { createPodPlacer } from '../../scheduler/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { planBinding } from '../claim.ts'
import { type Cluster, createCluster, type StoredPod } from '../cluster.ts'
import { createSnapshotCaches, fixedClock, type SnapshotCaches } from '../snapshot-caches.ts'
import { bindClaim, bindPlacedPod, createVolume } from './bind-placed-pod.ts'
import { admitObjects, type NewObjects } from './new-objects.ts'
import { createNodeAdder } from './node-adder.ts'
import { createRejections } from './rejections.ts'
import { remainingClasses, remainingNodes } from './remaining.ts'
import type { PlacedPodResult, PlacedVolume, SimulationResult } from './result.ts'
import type { Scenario } from './scenario.ts'
import type { SimulationOptions } from './simulate.ts'

interface RoundRules {
  /** The number of nodes of the group that exist from the start. */
  readonly nodeCount: number
  /** Whether a node is added for a pod that fits only on a new one. */
  readonly canGrow: boolean
  readonly round: number
}

export interface Round {
  readonly result: SimulationResult
  readonly addedNodeCount: number
}

const PODS_PER_PAUSE = 32

export async function runRound(scenario: Scenario, rules: RoundRules, options: SimulationOptions): Promise<Round> {
  const { random, onProgress, pause } = options
  const { snapshot, unplacedPods, group } = scenario
  const created = admitObjects(scenario)
  const extended = {
    ...snapshot,
    claims: [...snapshot.claims, ...created.claims],
    pods: [...snapshot.pods, ...created.pods],
  }
  const caches = createSnapshotCaches(extended)
  const clock = fixedClock(snapshot.nowMs)
  const adder = group && createNodeAdder(group, caches, { clock, random })
  for (let count = 0; count < rules.nodeCount; count++) adder?.add()
  const createdVolumes = new Set<string>()
  const placer = createPodPlacer({
    caches,
    clock,
    random,
    applyPlacement(pod, placement) {
      for (const { claimKey, volumeName } of placement.volumes)
        if (volumeName === undefined) createdVolumes.add(claimKey)
      bindPlacedPod(pod as StoredPod, placement, caches)
    },
  })
  const cluster = createCluster(extended, { caches, evaluate: placer.evaluate })
  const notes = new Set(created.notes)
  bindImmediateClaims(created, cluster, caches, { createdVolumes, notes })
  const rejections = createRejections(created, cluster)
  const placed: PlacedPodResult[] = []

  const queue = [...unplacedPods, ...created.pods].sort(byPriority)
  for (const [index, pod] of queue.entries()) {
    if (index % PODS_PER_PAUSE === 0) await pause()
    placePod(pod)
    onProgress?.({ completedPodCount: index + 1, totalPodCount: queue.length, round: rules.round })
  }

  function placePod(pod: StoredPod): void {
    const { nodeName, schedulingGates = [] } = pod.spec ?? {}
    if (nodeName) {
      notes.add('Pods with spec.nodeName bypass the scheduler: they are on their node, whether or not they fit.')
      placed.push(describePlacedPod(pod, nodeName))
    } else if (schedulingGates.length > 0) rejections.add(pod, 'the pod has scheduling gates')
    else {
      let placement = placer.place(pod)
      if (placement.is === 'rejected' && rules.canGrow && adder?.wouldFit(pod)) {
        adder.add()
        placement = placer.place(pod)
      }
      if (placement.is === 'placed') placed.push(describePlacedPod(pod, placement.nodeName))
      else rejections.add(pod, placement.message)
    }
  }

  function describePlacedPod(pod: StoredPod, node: string): PlacedPodResult {
    const { namespace = '', name } = pod.metadata
    const volumes = claimsOfPod(pod).flatMap((key) => describeVolume(key, caches, createdVolumes))
    return { namespace, name, node, volumes }
  }

  const result = {
    fits: rejections.list.length === 0,
    placed,
    rejected: rejections.list,
    nodes: remainingNodes(placer, adder?.names ?? new Set()),
    classes: remainingClasses(placer, caches),
    quotas: created.quotaUsage,
    notes: [...notes],
  }
  return { result, addedNodeCount: adder?.names.size ?? 0 }
}

/** Pods of a higher priority first, otherwise in the given order, as in the scheduler's queue. */
const byPriority = (a: Readonly<Pod>, b: Readonly<Pod>): number => (b.spec?.priority ?? 0) - (a.spec?.priority ?? 0)

function describeVolume(
  claimKey: ObjectKey,
  { claims }: SnapshotCaches,
  createdVolumes: ReadonlySet<ObjectKey>,
): PlacedVolume[] {
  const claim = claims.get(claimKey)
  if (!claim) return []
  const { volumeName } = claim.spec ?? {}
  return [
    {
      claim: claim.metadata.name,
      class: claimClassName(claim) ?? '',
      size: claim.spec?.resources?.requests?.storage ?? '',
      ...(volumeName && !createdVolumes.has(claimKey) ? { volume: volumeName } : {}),
    },
  ]
}

interface BindingRecord {
  readonly createdVolumes: Set<ObjectKey>
  readonly notes: Set<string>
}

/** Binds the new claims that the binding controller would bind or provision without waiting for a pod. */
function bindImmediateClaims(
  { claims }: NewObjects,
  cluster: Cluster,
  caches: SnapshotCaches,
  { createdVolumes, notes }: BindingRecord,
): void {
  for (const claim of claims) {
    const action = planBinding(claim, cluster)
    if (action.do === 'bind') bindClaim(claim, action.volume as Readonly<Stored<typeof action.volume>>, caches)
    else if (action.do === 'provision') {
      createdVolumes.add(keyOfObject(claim))
      notes.add(
        `The class ${claimClassName(claim)} creates volumes before a node is selected: they are assumed to be usable on every ` +
          'node, and are not subtracted from the capacity of the class.',
      )
      bindClaim(claim, createVolume(claim, undefined, caches), caches)
    }
  }
}
