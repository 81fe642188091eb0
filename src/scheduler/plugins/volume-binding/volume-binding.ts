// Schedules a pod where its volumes are or can be provisioned: bound volumes must be reachable, existing ones are chosen,
// new ones must fit. The decision is reserved at once; preBind writes it (claimRef on volumes, the selected node on
// claims) and waits until the binding and provisioning controllers have done their part.
//   pod-volumes.ts    the pod's claims           node-planner.ts     the plan for one node
//   score.ts          which node is better       bind-volumes.ts, binding-waits.ts   write the plan, wait
//   capacity/         reported and reserved      stranded-claims.ts  claims that exclude each other

import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../../client/index.ts'
import type { Volume } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { ClusterEvent } from '../../framework/cluster-events.ts'
import { type Plugin, type PluginHandle, UNSIGNABLE } from '../../framework/plugin.ts'
import { type PreFilterResult, SKIP, unschedulable } from '../../framework/status.ts'
import { claimKey } from '../shared-hints.ts'
import { AssumedVolumes } from './assumed-volumes.ts'
import { AvailableVolumes } from './available-volumes.ts'
import { bindVolumes } from './bind-volumes.ts'
import { BindingError, BindingWaits } from './binding-waits.ts'
import { CapacityIndex } from './capacity/capacity-index.ts'
import { type RequestedVolume, Reservations } from './capacity/reservations.ts'
import { FailedNodes } from './failed-nodes.ts'
import { type NodePlan, NodePlanner, type PlannerDeps } from './node-planner.ts'
import { type BoundClaim, type DelayedClaim, podVolumes } from './pod-volumes.ts'
import { classKey, driverKey, volumeBindingHints } from './queueing-hints.ts'
import { NOT_ENOUGH_SPACE, preBindFailed } from './reasons.ts'
import { scoreOf } from './score.ts'
import { deleteClaims, deletingClaims, explainStranded, recreatableClaims } from './stranded-claims.ts'
import { type TrackingDeps, trackClaim, trackDeletedVolume } from './track-reservations.ts'

interface State {
  readonly pod: PodInfo
  readonly bound: readonly BoundClaim[]
  readonly delayed: readonly DelayedClaim[]
  readonly planner: NodePlanner
  /** Nodes on which provisioning for this pod has failed recently. */
  readonly failedNodes: ReadonlySet<string> | undefined
  /** Set by reserve. */
  plan?: NodePlan
}

export function createVolumeBinding(handle: PluginHandle): Plugin<State> {
  const { caches, cluster, clock, emit, metrics } = handle
  const { capacities, classes, claims, volumes, drivers } = caches
  const available = new AvailableVolumes(volumes)
  const assumed = new AssumedVolumes()
  const waits = new BindingWaits(caches, cluster, clock)
  const failedNodes = new FailedNodes(clock)
  const index = new CapacityIndex()
  const reservations =
    capacities && handle.capacityReservation
      ? new Reservations({
          index,
          clock,
          driverOf: (className) => classes.get(className)?.provisioner,
          onFreed: (driver) => emit({ on: 'pluginState', keys: [driverKey(driver)] }),
        })
      : undefined
  // While the feature gate is off no capacity is known, and none is required.
  const tracksCapacity = (driver: string) =>
    capacities?.synced === true && drivers.get(driver)?.spec.storageCapacity === true
  const capacity = { index, reservations }
  const plannerDeps: PlannerDeps = { available, assumed, capacity, tracksCapacity }
  const tracking: TrackingDeps | undefined = reservations && { caches, cluster, index, reservations, tracksCapacity }

  function preFilter(pod: PodInfo, asIfUnbound?: ReadonlySet<ObjectKey>): PreFilterResult<State> {
    if (pod.claims.length === 0) return SKIP
    const found = podVolumes(pod, caches, asIfUnbound)
    if (found.is === 'rejected') return unschedulable(found.reason)
    const { bound, delayed } = found
    // Claims are deleted only if all volumes fit together: otherwise they would be created and deleted over and over.
    const deps = asIfUnbound ? { ...plannerDeps, capacity: { ...capacity, fitsTogether: true } } : plannerDeps
    const planner = new NodePlanner(deps, bound, delayed)
    const failed = failedNodes.of([pod.uid, ...delayed.map(({ claim }) => claim.metadata.uid)])
    return { code: 'Success', state: { pod, bound, delayed, planner, failedNodes: failed } }
  }

  function assume({ pod }: State, node: NodeInfo, { bind, provision }: NodePlan): void {
    const common = { nodeName: node.name, podKey: pod.key }
    for (const { claim, volume } of bind) assumed.assume(claim.key, { ...common, volume: volume.metadata.name ?? '' })
    for (const one of provision) {
      assumed.assume(one.claim.key, common)
      const requested = requestedVolume(one)
      if (requested) reservations?.assume(requested)
    }
  }

  /** Drops the assumptions of reserve, and requeues pods that can use the released volumes and capacity. */
  function release({ pod, plan }: State): void {
    if (!plan) return
    const decided = [...plan.bind, ...plan.provision]
    for (const { claim } of decided) {
      assumed.forget(claim.key, pod.key)
      reservations?.release(claim.key)
    }
    const undecided = decided.filter(({ claim }) => isUndecided(claim.key))
    const isUnclaimed = ({ metadata: { name = '' } }: Volume) => !volumes.get(name)?.spec?.claimRef
    const freed = plan.bind.filter(({ volume }) => isUnclaimed(volume))
    if (undecided.length + freed.length === 0) return
    const freedClasses = freed.map(({ claim }) => classKey(claim.storageClass.metadata.name))
    emit({ on: 'pluginState', keys: [...freedClasses, ...undecided.map(({ claim }) => claimKey(claim.key))] })
  }

  function isUndecided(key: ObjectKey): boolean {
    const claim = claims.get(key)
    return claim !== undefined && !claim.spec?.volumeName && !annotationOf(claim, SELECTED_NODE)
  }

  /** The pod avoids this node next time. If a volume was created in another place, this one had no capacity. */
  function recordNodeFailure({ pod }: State, node: NodeInfo, { provision }: NodePlan): void {
    failedNodes.add(pod.uid, node.name)
    for (const one of provision) {
      failedNodes.add(one.claim.claim.metadata.uid, node.name)
      const volume = volumes.get(claims.get(one.claim.key)?.spec?.volumeName ?? '')
      const requested = requestedVolume(one)
      if (requested && volume && !isReachableFrom(volume, node)) reservations?.createdElsewhere(requested)
    }
  }

  function observe(event: ClusterEvent): void {
    switch (event.on) {
      case 'node':
        if (!event.next) waits.nodeDeleted(event.old?.metadata.name ?? '')
        return
      case 'storageCapacity':
        capacityChanged(event)
        return
      case 'volume':
        volumeChanged(event)
        return
      case 'claim':
        claimChanged(event)
        return
      case 'podDeleted':
        waits.podDeleted(event.key)
    }
  }

  function capacityChanged({ next, old }: ClusterEvent<'storageCapacity'>): void {
    if (next) {
      const { before, now } = index.put(next)
      reservations?.reportChanged(now, before)
    } else if (old) {
      const key = keyOfObject(old)
      index.remove(key)
      reservations?.reportDeleted(key)
    }
  }

  function volumeChanged({ next, old }: ClusterEvent<'volume'>): void {
    if (next) available.put(next)
    else if (old) available.remove(old.metadata.name)
    if (old) waits.volumeChanged(old) // the claim it belonged to before
    if (next) waits.volumeChanged(next)
    else if (old && tracking) trackDeletedVolume(old, tracking)
  }

  function claimChanged({ next, old }: ClusterEvent<'claim'>): void {
    if (next) {
      if (tracking) trackClaim(next, old, tracking)
      waits.claimChanged(keyOfObject(next))
    } else if (old) {
      const key = keyOfObject(old)
      reservations?.claimDeleted(key)
      waits.claimChanged(key)
    }
  }

  return {
    name: 'VolumeBinding',
    weight: 1,
    events: volumeBindingHints(caches, reservations !== undefined),
    slowPreBind: {
      reason: 'WaitingForVolumes',
      message: (nodeName) =>
        `Node ${JSON.stringify(nodeName)} is selected, but not all volumes are bound yet. The events of the pod's claims say why.`,
    },
    preFilter: (pod) => preFilter(pod),
    filter: ({ planner }, node) => planner.filter(node),
    avoid: (state, { name }) => state.failedNodes?.has(name) ?? false,
    score: ({ planner, delayed }, nodes) =>
      delayed.length === 0 ? undefined : nodes.map((node) => scoreOf(planner.planFor(node), reservations)),
    reserve(state, node) {
      if (state.delayed.length === 0) return
      state.plan = state.planner.planFor(node)
      assume(state, node, state.plan)
    },
    unreserve: release,
    postBind: release,
    preBindPreFlight: ({ plan }) => plan !== undefined,
    async preBind(state, node) {
      const { pod, bound, plan } = state
      if (!plan) return
      try {
        await bindVolumes(plan, node.name, handle)
        await waits.until({ podKey: pod.key, nodeName: node.name, plan, bound, timeoutMs: handle.bindTimeoutMs })
      } catch (error) {
        metrics?.volumeStageFailed('bind')
        if (error instanceof BindingError && error.isNodeFault) recordNodeFailure(state, node, plan)
        throw new Error(preBindFailed(error instanceof Error ? error.message : String(error)), { cause: error })
      }
    },
    explain({ bound, delayed, planner }, statuses) {
      const isShort = [...statuses.values()].some(({ reasons }) => reasons.includes(NOT_ENOUGH_SPACE))
      const sentences = [isShort ? planner.shortage() : undefined, explainStranded(bound, delayed, statuses)]
      return sentences.filter(Boolean).join(' ') || undefined
    },
    postFilter(pod) {
      const found = podVolumes(pod, caches)
      if (found.is === 'rejected') return []
      return recreatableClaims(found.bound, caches).map((keys) => ({
        preFilter: () => preFilter(pod, new Set(keys)),
        message: deletingClaims(keys),
        apply: () => deleteClaims(keys, handle),
      }))
    },
    signPod(pod) {
      if (pod.claims.length === 0) return undefined
      const found = podVolumes(pod, caches)
      if (found.is === 'rejected' || found.bound.length > 0) return UNSIGNABLE
      const isDecided = ({ key, selectedNode }: DelayedClaim) =>
        selectedNode !== undefined || assumed.bindingOf(key) || available.reservedFor(key).length > 0
      return found.delayed.some(isDecided) ? UNSIGNABLE : found.delayed.map(signatureOf)
    },
    observe,
    get reservations() {
      return reservations?.size ?? 0
    },
    stop() {
      waits.stop()
      reservations?.stop()
    },
  }
}

/** Undefined if the driver does not track capacity. */
function requestedVolume({ claim, report }: NodePlan['provision'][number]): RequestedVolume | undefined {
  if (!report) return undefined
  return {
    claimKey: claim.key,
    claimUid: claim.claim.metadata.uid,
    driver: claim.storageClass.provisioner,
    bytes: claim.bytes,
    report,
  }
}

function signatureOf({ storageClass, bytes, claim }: DelayedClaim): unknown {
  const { accessModes, volumeMode, selector, volumeAttributesClassName } = claim.spec ?? {}
  return [storageClass.metadata.name, String(bytes), accessModes, volumeMode, selector, volumeAttributesClassName]
}
