// Lets go of a volume that is being deleted once no attachment of it is left: until then its object tells the attacher
// what to unpublish.
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../../runtime/index.ts'
import { attachmentsOfVolume, isBeingDeleted } from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'

export async function releaseVolume(name: ObjectKey, context: AttacherContext): Promise<Outcome> {
  const { client, volumes, attachments, finalizer } = context
  const volume = volumes.get(name)
  if (!volume || !isBeingDeleted(volume) || !volume.metadata.finalizers?.includes(finalizer)) return done
  const [attachment] = attachmentsOfVolume(attachments, name)
  if (attachment) return stuck(`persistentvolume ${name} is still attached to node ${attachment.spec.nodeName}`)
  const body = { metadata: { uid: volume.metadata.uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } }
  try {
    await client.patch(persistentVolumeKind, { name }, { type: 'strategic', body })
    return done
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return done
    if (error instanceof ApiError && error.code === 409) return backOff('the volume changed meanwhile')
    throw error
  }
}
