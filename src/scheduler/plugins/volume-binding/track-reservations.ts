// Updates capacity reservations when claims and volumes change. The claim is the source of truth, because its node may have
// been selected by another scheduler, by a user or by a previous process.

import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import { keyOfObject } from '../../../client/index.ts'
import { claimKeyOf, type Volume } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { CapacityIndex } from './capacity/capacity-index.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import type { RequestedVolume, Reservations } from './capacity/reservations.ts'
import { requestedBytes, type VolumeCaches } from './pod-volumes.ts'

export interface TrackingDeps {
  readonly caches: VolumeCaches
  readonly cluster: ClusterState
  readonly index: CapacityIndex
  readonly reservations: Reservations
  readonly tracksCapacity: (driver: string) => boolean
}

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export function trackClaim(claim: Claim, old: Claim | undefined, deps: TrackingDeps): void {
  const { reservations } = deps
  const key = keyOfObject(claim)
  const { uid } = claim.metadata
  if (claim.spec?.volumeName) {
    reservations.volumeCreated(key, uid)
    return
  }
  const node = annotationOf(claim, SELECTED_NODE)
  const oldNode = old && annotationOf(old, SELECTED_NODE)
  if (node !== oldNode) {
    // A lost node says nothing about the capacity that other nodes share with it.
    if (oldNode && isConfirmedOff(deps.cluster.node(oldNode)?.node)) reservations.provisioningCancelled(key, uid)
    else reservations.provisioningFailed(key, uid)
  }
  if (!node || reservations.nodeSelected(key, uid)) return
  const requestedVolume = requestedVolumeOf(claim, node, deps)
  if (requestedVolume) reservations.adopt(requestedVolume)
}

/** Releases the reservation of a volume with the reclaim policy Delete: its PV is deleted only after its storage. */
export function trackDeletedVolume(volume: Volume, { reservations }: TrackingDeps): void {
  const claim = claimKeyOf(volume)
  if (!claim || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return
  reservations.volumeDeleted(claim, volume.spec.claimRef?.uid ?? '')
}

function requestedVolumeOf(claim: Claim, nodeName: string, deps: TrackingDeps): RequestedVolume | undefined {
  const className = claimClassName(claim) ?? ''
  const storageClass = deps.caches.classes.get(className)
  const node = deps.cluster.node(nodeName)
  if (!storageClass || !node || !deps.tracksCapacity(storageClass.provisioner)) return undefined
  const report = selectLargest(deps.index.find(className, node.labels))
  if (!report) return undefined
  const { uid: claimUid } = claim.metadata
  const bytes = requestedBytes(claim)
  return { claimKey: keyOfObject(claim), claimUid, driver: storageClass.provisioner, bytes, report }
}

function selectLargest(reports: readonly CapacityReport[]): CapacityReport | undefined {
  let largest: CapacityReport | undefined
  for (const report of reports) {
    const isLarger =
      !largest ||
      (report.capacityBytes ?? 0n) > (largest.capacityBytes ?? 0n) ||
      (report.capacityBytes === largest.capacityBytes && report.key < largest.key)
    if (isLarger) largest = report
  }
  return largest
}
