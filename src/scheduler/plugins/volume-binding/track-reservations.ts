// Updates capacity reservations from the claims. A claim shows how far its provisioning has come, whether this process,
// an earlier one, another scheduler or a user selected its node.

import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
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
  if (node !== (old && annotationOf(old, SELECTED_NODE))) reservations.provisioningFailed(key, uid)
  if (!node || reservations.nodeSelected(key, uid)) return
  const requested = requestedVolume(claim, node, deps)
  if (requested) reservations.adopt(requested)
}

/** With reclaim policy Delete the PV is deleted after its storage: the bytes are already free. */
export function trackDeletedVolume(volume: Volume, { reservations }: TrackingDeps): void {
  const claim = claimKeyOf(volume)
  if (!claim || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return
  reservations.volumeDeleted(claim, volume.spec.claimRef?.uid ?? '')
}

function requestedVolume(claim: Claim, nodeName: string, deps: TrackingDeps): RequestedVolume | undefined {
  const className = claimClassName(claim) ?? ''
  const storageClass = deps.caches.classes.get(className)
  const node = deps.cluster.node(nodeName)
  if (!storageClass || !node || !deps.tracksCapacity(storageClass.provisioner)) return undefined
  const report = largest(deps.index.find(className, node.labels))
  if (!report) return undefined
  const { uid: claimUid } = claim.metadata
  const bytes = requestedBytes(claim)
  return { claimKey: keyOfObject(claim), claimUid, driver: storageClass.provisioner, bytes, report }
}

function largest(reports: readonly CapacityReport[]): CapacityReport | undefined {
  let best: CapacityReport | undefined
  for (const report of reports) {
    const isBetter =
      !best ||
      (report.capacityBytes ?? 0n) > (best.capacityBytes ?? 0n) ||
      (report.capacityBytes === best.capacityBytes && report.key < best.key)
    if (isBetter) best = report
  }
  return best
}
