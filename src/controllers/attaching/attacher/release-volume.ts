// Removes the attacher's finalizer from a volume that is being deleted, after its last attachment was deleted. Until then
// the attacher needs the volumeHandle to unpublish.
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../../runtime/index.ts'
import { attachmentsOfVolume, isBeingDeleted } from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'

export async function releaseVolume(name: ObjectKey, context: AttacherContext): Promise<Outcome> {
  const { client, volumes, attachments, finalizer } = context
  const volume = volumes.get(name)
  if (!volume || !isBeingDeleted(volume) || !volume.metadata.finalizers?.includes(finalizer)) return done
  const [attachment] = attachmentsOfVolume(attachments, name)
  if (attachment) {
    const waitsFor = { kind: 'VolumeAttachment', name: attachment.metadata.name }
    return stuck(`persistentvolume ${name} is still attached to node ${attachment.spec.nodeName}`, { waitsFor })
  }
  const body = { metadata: { uid: volume.metadata.uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } }
  try {
    await client.patch(persistentVolumeKind, { name }, { type: 'strategic', body })
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the volume changed during the reconcile')
    throw error
  }
}
