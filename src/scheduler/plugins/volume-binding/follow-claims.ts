// Keeps reservations in step with the claims themselves: whoever asked for a volume, and whether this process or an
// earlier one decided it, the claim says how far it has come.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import { keyOfObject } from '../../../client/index.ts'
import { claimKeyOf, type Volume } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import type { CapacityIndex } from '../../capacity/capacity-index.ts'
import type { CapacityReport } from '../../capacity/capacity-report.ts'
import type { Reservations, WantedVolume } from '../../capacity/reservations.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import { requestedBytes, type VolumeCaches } from './pod-volumes.ts'

export interface FollowFacts {
  readonly caches: VolumeCaches
  readonly cluster: ClusterState
  readonly index: CapacityIndex
  readonly reservations: Reservations
  readonly tracksCapacity: (driver: string) => boolean
}

type Claim = Readonly<PersistentVolumeClaim>

export function followClaim(claim: Claim, old: Claim | undefined, facts: FollowFacts): void {
  const { reservations } = facts
  const key = keyOfObject(claim)
  const { uid = '' } = claim.metadata
  if (claim.spec?.volumeName) {
    reservations.made(key, uid)
    return
  }
  const node = annotationOf(claim, SELECTED_NODE)
  if (node !== (old && annotationOf(old, SELECTED_NODE))) reservations.failed(key, uid) // it was asked for elsewhere
  if (!node || reservations.asked(key, uid)) return
  const wanted = wantedVolume(claim, node, facts)
  if (wanted) reservations.found(wanted)
}

/** Where the policy is to delete, the object outlives the volume: its bytes are free already. */
export function followDeletedVolume(volume: Volume, { reservations }: FollowFacts): void {
  const claim = claimKeyOf(volume)
  if (!claim || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return
  reservations.deleted(claim, volume.spec.claimRef?.uid ?? '')
}

function wantedVolume(claim: Claim, nodeName: string, facts: FollowFacts): WantedVolume | undefined {
  const className = claimClassName(claim) ?? ''
  const storageClass = facts.caches.classes.get(className)
  const node = facts.cluster.node(nodeName)
  if (!storageClass || !node || !facts.tracksCapacity(storageClass.provisioner)) return undefined
  const report = roomiest(facts.index.find(className, node.labels))
  if (!report) return undefined
  const { uid: claimUid = '' } = claim.metadata
  const bytes = requestedBytes(claim)
  return { claimKey: keyOfObject(claim), claimUid, driver: storageClass.provisioner, bytes, report }
}

function roomiest(reports: readonly CapacityReport[]): CapacityReport | undefined {
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
