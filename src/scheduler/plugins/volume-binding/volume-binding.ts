// Rejects nodes that cannot reach the bound volumes of a pod, or on which its other volumes neither exist nor can be
// provisioned. reserve assumes the plan for the node; preBind writes it and waits for the binding and provisioning controllers.
//   pod-volumes.ts    classifies claims          node-planner.ts     plans the claims for a node
//   score.ts          scores plans               bind-volumes.ts, binding-waits.ts   write the plan and wait
//   capacity/         reports and reservations   stranded-claims.ts  claims whose volumes are on different nodes

import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../../client/index.ts'
import type { Volume } from '../../../volumes/matching.ts'
import { LAST_FAILURE, SELECTED_NODE } from '../../../volumes/names.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import { type Placement, readPlacement } from '../../../volumes/placement.ts'
import { missingTopologyLabels } from '../../../volumes/topology-labels.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { ClusterEvent } from '../../framework/cluster-events.ts'
import { type NodeStatuses, type Plugin, type PluginHandle, UNSIGNABLE } from '../../framework/plugin.ts'
import { type PreFilterResult, SKIP, unresolvable } from '../../framework/status.ts'
import { getOrCreate } from '../../get-or-create.ts'
import { claimKey } from '../shared-hints.ts'
import { AssumedVolumes } from './assumed-volumes.ts'
import { AvailableVolumes } from './available-volumes.ts'
import { bindVolumes } from './bind-volumes.ts'
import { BindingError, BindingWaits } from './binding-waits.ts'
import { CapacityIndex } from './capacity/capacity-index.ts'
import { type RequestedVolume, Reservations } from './capacity/reservations.ts'
import { FailedNodes } from './failed-nodes.ts'
import { type NodePlan, NodePlanner, type PlannerDeps } from './node-planner.ts'
import { type BoundClaim, classifyClaims, type DelayedClaim } from './pod-volumes.ts'
import { classKey, driverKey, volumeBindingHints } from './queueing-hints.ts'
import { driverNotRegistered, NODE_CONFLICT, NOT_ENOUGH_SPACE, preBindFailed, volumeNotCreated } from './reasons.ts'
import { scoreNodes } from './score.ts'
import { deleteClaims, deletingClaimsMessage, explainStrandedClaims, recreatableClaims } from './stranded-claims.ts'
import { type TrackingDeps, trackClaim, trackDeletedVolume } from './track-reservations.ts'
import { UsedStorage } from './used-storage.ts'

interface State {
  readonly pod: PodInfo
  readonly boundClaims: readonly BoundClaim[]
  readonly delayedClaims: readonly DelayedClaim[]
  readonly planner: NodePlanner
  /** The placement policies of the delayed claims' classes, by class. */
  readonly placements: ReadonlyMap<string, Placement>
  /** The nodes on which provisioning for this pod has failed recently. */
  readonly failedNodes: ReadonlySet<string> | undefined
  /** The plan for the selected node, set by reserve. */
  plan?: NodePlan
}

const BY_DRIVER = 'scheduler/driver'
/** The weight of this plugin's scores if a placement policy applies: more than the weights of all other plugins together. */
const PLACEMENT_WEIGHT = 10
const NO_KEYS: readonly string[] = []
const driverNamesOf = ({ spec }: Readonly<CSINode>): string[] => spec.drivers.map(({ name }) => name)

export function createVolumeBinding(handle: PluginHandle): Plugin<State> {
  const { caches, cluster, clock, emit, metrics } = handle
  const { capacities, classes, claims, volumes, drivers, csiNodes } = caches
  csiNodes.addIndex(BY_DRIVER, driverNamesOf)
  const availableVolumes = new AvailableVolumes(volumes)
  const assumedVolumes = new AssumedVolumes()
  const waits = new BindingWaits(caches, cluster, clock)
  const failedNodes = new FailedNodes(clock)
  let usedStorage: UsedStorage | undefined
  const index = new CapacityIndex()
  const reservations =
    capacities && handle.reservesCapacity
      ? new Reservations({
          index,
          clock,
          driverOf: (className) => classes.get(className)?.provisioner,
          onReleased: (driver) => emit({ on: 'pluginState', keys: [driverKey(driver)] }),
        })
      : undefined
  // `capacities` is undefined if the feature gate is disabled: capacity is then not checked.
  const tracksCapacity = (driver: string) =>
    capacities?.isSynced === true && drivers.get(driver)?.spec.storageCapacity === true
  const capacity = { index, reservations }
  function missingLabels({ name, labels }: NodeInfo, driver: string): readonly string[] {
    const entry = csiNodes.get(name)?.spec.drivers.find((candidate) => candidate.name === driver)
    return entry?.topologyKeys ? missingTopologyLabels(entry, labels) : NO_KEYS
  }

  const plannerDeps: PlannerDeps = { availableVolumes, assumedVolumes, capacity, tracksCapacity, missingLabels }
  const trackingDeps: TrackingDeps | undefined = reservations && {
    caches,
    cluster,
    index,
    reservations,
    tracksCapacity,
  }

  function preFilter(pod: PodInfo, claimsToRecreate?: ReadonlySet<ObjectKey>): PreFilterResult<State> {
    if (pod.claims.length === 0) return SKIP
    const podVolumes = classifyClaims(pod, caches, claimsToRecreate)
    if (podVolumes.is === 'rejected') return unresolvable(podVolumes.reason)
    const { boundClaims, delayedClaims } = podVolumes
    // Delete claims only if all volumes fit together. Otherwise they would be created and deleted repeatedly.
    const deps = claimsToRecreate ? { ...plannerDeps, capacity: { ...capacity, mustFitTogether: true } } : plannerDeps
    const planner = new NodePlanner(deps, boundClaims, delayedClaims)
    const recentFailures = failedNodes.nodesOf([pod.uid, ...delayedClaims.map(({ claim }) => claim.metadata.uid)])
    const placements = placementsFor(delayedClaims)
    return {
      code: 'Success',
      state: { pod, boundClaims, delayedClaims, planner, placements, failedNodes: recentFailures },
    }
  }

  function placementsFor(delayedClaims: readonly DelayedClaim[]): Map<string, Placement> {
    const placements = new Map<string, Placement>()
    for (const { storageClass } of delayedClaims) {
      const parsed = readPlacement(storageClass)
      // An invalid policy counts as none: `stowage doctor` reports it.
      const placement = parsed?.is === 'placement' ? parsed.placement : handle.defaultPlacement
      if (placement) placements.set(storageClass.metadata.name, placement)
    }
    return placements
  }

  /** Reads all volumes when a policy needs them for the first time. */
  function usedBytes(node: NodeInfo, driver: string): bigint {
    usedStorage ??= new UsedStorage(() => volumes.list())
    return usedStorage.bytesOn(node, driver)
  }

  function assume({ pod }: State, node: NodeInfo, { bindings, provisions }: NodePlan): void {
    const binding = { nodeName: node.name, podKey: pod.key }
    for (const { claim, volume } of bindings)
      assumedVolumes.assume(claim.key, { ...binding, volume: volume.metadata.name })
    for (const provisioning of provisions) {
      assumedVolumes.assume(provisioning.claim.key, binding)
      const volume = requestedVolumeOf(provisioning)
      if (volume) reservations?.assume(volume)
    }
  }

  /** Drops the assumptions of reserve, and requeues pods that can use the released volumes and capacity. */
  function release({ pod, plan }: State): void {
    if (!plan) return
    const plannedClaims = [...plan.bindings, ...plan.provisions]
    for (const { claim } of plannedClaims) {
      assumedVolumes.forget(claim.key, pod.key)
      reservations?.release(claim.key)
    }
    const releasedClaims = plannedClaims.filter(({ claim }) => isUnbound(claim.key))
    const isUnclaimed = ({ metadata: { name = '' } }: Volume) => !volumes.get(name)?.spec?.claimRef
    const releasedVolumes = plan.bindings.filter(({ volume }) => isUnclaimed(volume))
    if (releasedClaims.length + releasedVolumes.length === 0) return
    const classKeys = releasedVolumes.map(({ claim }) => classKey(claim.storageClass.metadata.name))
    emit({ on: 'pluginState', keys: [...classKeys, ...releasedClaims.map(({ claim }) => claimKey(claim.key))] })
  }

  /** Returns a sentence for each driver that no node has registered: no node then has the topology of its volumes. */
  function explainMissingDrivers(boundClaims: readonly BoundClaim[], statuses: NodeStatuses): string[] {
    if (![...statuses.values()].some(({ reasons }) => reasons.includes(NODE_CONFLICT))) return []
    const claimsByDriver = new Map<string, string[]>()
    for (const { name, volume } of boundClaims) {
      const driver = volume?.spec?.csi?.driver
      if (driver !== undefined && csiNodes.byIndex(BY_DRIVER, driver).length === 0)
        getOrCreate(claimsByDriver, driver, () => []).push(name)
    }
    return [...claimsByDriver].map(([driver, names]) => driverNotRegistered(driver, names))
  }

  /** Whether the claim has neither a volume nor a selected node. */
  function isUnbound(key: ObjectKey): boolean {
    const claim = claims.get(key)
    return claim !== undefined && !claim.spec?.volumeName && !annotationOf(claim, SELECTED_NODE)
  }

  /** Makes the pod avoid this node. If the driver created a volume on other nodes, records that its size does not fit here. */
  function recordNodeFailure({ pod }: State, node: NodeInfo, { provisions }: NodePlan): void {
    failedNodes.add(pod.uid, node.name)
    for (const provisioning of provisions) {
      const { claim } = provisioning
      failedNodes.add(claim.claim.metadata.uid, node.name)
      const volume = volumes.get(claims.get(claim.key)?.spec?.volumeName)
      const requestedVolume = requestedVolumeOf(provisioning)
      if (requestedVolume && volume && !isReachableFrom(volume, node))
        reservations?.createdOnOtherNodes(requestedVolume)
    }
  }

  function observe(event: ClusterEvent): void {
    switch (event.on) {
      case 'node':
        if (!event.next || isConfirmedOff(event.next)) waits.nodeRemoved((event.next ?? event.old)?.metadata.name ?? '')
        return
      case 'storageCapacity':
        updateCapacity(event)
        return
      case 'volume':
        updateVolume(event)
        return
      case 'claim':
        updateClaim(event)
        return
      case 'podDeleted':
        waits.podDeleted(event.key)
    }
  }

  function updateCapacity({ next, old }: ClusterEvent<'storageCapacity'>): void {
    if (next) {
      const { previous, current } = index.put(next)
      reservations?.reportChanged(current, previous)
    } else if (old) {
      const key = keyOfObject(old)
      index.remove(key)
      reservations?.reportDeleted(key)
    }
  }

  function updateVolume({ next, old }: ClusterEvent<'volume'>): void {
    if (next) {
      availableVolumes.put(next)
      usedStorage?.put(next)
    } else if (old) {
      availableVolumes.remove(old.metadata.name)
      usedStorage?.remove(old.metadata.name)
    }
    if (old) waits.volumeChanged(old) // for the claim in its previous claimRef
    if (next) waits.volumeChanged(next)
    else if (old && trackingDeps) trackDeletedVolume(old, trackingDeps)
  }

  function updateClaim({ next, old }: ClusterEvent<'claim'>): void {
    if (next) {
      if (trackingDeps) trackClaim(next, old, trackingDeps)
      waits.claimChanged(keyOfObject(next))
    } else if (old) {
      const key = keyOfObject(old)
      reservations?.claimDeleted(key)
      waits.claimChanged(key)
    }
  }

  return {
    name: 'VolumeBinding',
    weight: ({ placements }) => (placements.size > 0 ? PLACEMENT_WEIGHT : 1),
    events: volumeBindingHints(caches, reservations !== undefined),
    slowPreBind: {
      reason: 'WaitingForVolumes',
      message: (nodeName) =>
        `Node ${JSON.stringify(nodeName)} is selected, but not all volumes are bound yet. See the events of the pod's claims.`,
    },
    preFilter: (pod) => preFilter(pod),
    filter: ({ planner }, node) => planner.filter(node),
    detailRejection: ({ planner }, node) => planner.detailRejection(node),
    avoid: (state, { name }) => state.failedNodes?.has(name) ?? false,
    score({ planner, delayedClaims, placements }, nodes) {
      if (delayedClaims.length === 0) return undefined
      const candidates = nodes.map((node) => ({ node, plan: planner.planFor(node) }))
      return scoreNodes(candidates, { reservations, placements, usedBytes })
    },
    reserve(state, node) {
      if (state.delayedClaims.length === 0) return
      state.plan = state.planner.planFor(node)
      assume(state, node, state.plan)
    },
    unreserve: release,
    postBind: release,
    preBindPreFlight: ({ plan }) => plan !== undefined,
    async preBind(state, node) {
      const { pod, boundClaims, plan } = state
      if (!plan) return
      try {
        await bindVolumes(plan, node.name, handle)
        await waits.waitUntilBound({
          podKey: pod.key,
          nodeName: node.name,
          plan,
          boundClaims,
          timeoutMs: handle.bindTimeoutMs,
        })
      } catch (error) {
        metrics?.countVolumeStageError('bind')
        if (error instanceof BindingError && error.isNodeSpecific) recordNodeFailure(state, node, plan)
        throw new Error(preBindFailed(error instanceof Error ? error.message : String(error)), { cause: error })
      }
    },
    explain({ boundClaims, delayedClaims, planner }, statuses) {
      const lacksCapacity = [...statuses.values()].some(({ reasons }) => reasons.includes(NOT_ENOUGH_SPACE))
      const sentences = [
        lacksCapacity ? planner.describeShortage() : undefined,
        explainStrandedClaims(boundClaims, delayedClaims, statuses),
        ...explainMissingDrivers(boundClaims, statuses),
        ...delayedClaims.map(lastFailureOf),
      ]
      return sentences.filter(Boolean).join(' ') || undefined
    },
    remedies(pod) {
      const podVolumes = classifyClaims(pod, caches)
      if (podVolumes.is === 'rejected') return []
      return recreatableClaims(podVolumes.boundClaims, caches).map((keys) => ({
        preFilter: () => preFilter(pod, new Set(keys)),
        message: deletingClaimsMessage(keys),
        apply: () => deleteClaims(keys, handle),
      }))
    },
    signPod(pod) {
      if (pod.claims.length === 0) return undefined
      const podVolumes = classifyClaims(pod, caches)
      if (podVolumes.is === 'rejected' || podVolumes.boundClaims.length > 0) return UNSIGNABLE
      const isUnsignable = ({ key, selectedNode, claim }: DelayedClaim) =>
        selectedNode !== undefined ||
        assumedVolumes.bindingOf(key) ||
        availableVolumes.reservedFor(key).length > 0 ||
        annotationOf(claim, LAST_FAILURE) !== undefined // its message is about this claim only
      return podVolumes.delayedClaims.some(isUnsignable) ? UNSIGNABLE : podVolumes.delayedClaims.map(signatureOf)
    },
    reservedVolumes: ({ plan }) => [
      ...(plan?.bindings ?? []).map(({ claim, volume }) => ({ claimKey: claim.key, volumeName: volume.metadata.name })),
      ...(plan?.provisions ?? []).map(({ claim, report }) => ({ claimKey: claim.key, reportKey: report?.key })),
    ],
    freeCapacity: () => index.freeBytes(),
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

/** Returns a sentence with the last failure to create the claim's volume, if any. */
function lastFailureOf({ name, claim }: DelayedClaim): string | undefined {
  const message = annotationOf(claim, LAST_FAILURE)
  return message === undefined ? undefined : volumeNotCreated(name, message)
}

/** Returns undefined if the driver does not track capacity. */
function requestedVolumeOf({ claim, report }: NodePlan['provisions'][number]): RequestedVolume | undefined {
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
  const { accessModes, volumeMode, selector, volumeAttributesClassName, resources } = claim.spec ?? {}
  const { iops, throughput } = resources?.requests ?? {}
  return [
    storageClass.metadata.name,
    String(bytes),
    accessModes,
    volumeMode,
    selector,
    volumeAttributesClassName,
    iops,
    throughput,
  ]
}
