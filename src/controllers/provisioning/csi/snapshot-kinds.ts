// VolumeSnapshot and VolumeSnapshotContent: not served by our own server, but where they are, volumes are made from
// them. Only what restoring needs is described.
import { createdAtColumn, nameColumn } from '../../../api/columns.ts'
import { defineKind, type Kind, type KubeObject } from '../../../api/kind.ts'
import { object, req } from '../../../api/schema.ts'
import { objectMeta } from '../../../api/types/meta.ts'

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

const foreign = <T extends KubeObject>(kind: string, plural: string, namespaced: boolean): Kind<T> =>
  defineKind<any>({
    group: SNAPSHOT_GROUP,
    versions: ['v1'],
    kind,
    plural,
    singular: kind.toLowerCase(),
    namespaced,
    type: object(`dev.stowage.foreign.${kind}`, 'A kind of the snapshot controller.', {
      metadata: req(1, objectMeta, 'Standard metadata.'),
    }),
    isForeign: true,
    nameErrors: () => [],
    validate() {},
    columns: [nameColumn, createdAtColumn],
    deleteAnswersObject: false,
  })

export const volumeSnapshotKind = foreign<VolumeSnapshot>('VolumeSnapshot', 'volumesnapshots', true)
export const volumeSnapshotContentKind = foreign<VolumeSnapshotContent>(
  'VolumeSnapshotContent',
  'volumesnapshotcontents',
  false,
)
