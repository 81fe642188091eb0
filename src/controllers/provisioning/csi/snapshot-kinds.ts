// The kinds VolumeSnapshot and VolumeSnapshotContent with the fields that a restore needs. The Stowage API server does not
// serve them.
import { defineForeignKind } from '../../../api/foreign-kind.ts'
import type { Kind, KubeObject } from '../../../api/kind.ts'

export const SNAPSHOT_GROUP = 'snapshot.storage.k8s.io'

export interface VolumeSnapshot extends KubeObject {
  status?: { boundVolumeSnapshotContentName?: string; readyToUse?: boolean; restoreSize?: string }
}

export interface VolumeSnapshotContent extends KubeObject {
  spec?: {
    driver?: string
    sourceVolumeMode?: string
    volumeSnapshotRef?: { namespace?: string; name?: string; uid?: string }
  }
  status?: { snapshotHandle?: string }
}

const defineSnapshotKind = <T extends KubeObject>(kind: string, plural: string, namespaced: boolean): Kind<T> =>
  defineForeignKind({
    group: SNAPSHOT_GROUP,
    versions: ['v1'],
    kind,
    plural,
    namespaced,
    doc: 'A kind of the snapshot controller.',
  })

export const volumeSnapshotKind = defineSnapshotKind<VolumeSnapshot>('VolumeSnapshot', 'volumesnapshots', true)
export const volumeSnapshotContentKind = defineSnapshotKind<VolumeSnapshotContent>(
  'VolumeSnapshotContent',
  'volumesnapshotcontents',
  false,
)
