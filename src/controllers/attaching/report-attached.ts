// Updates status.volumesAttached of one node from its attachments. Node agents mount a volume that must be attached only if
// it is on this list. reconcile-volume.ts removes a volume from the list before it deletes the attachment.
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { NodeStatus } from '../../api/kinds/node/node-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { ObjectKey } from '../../client/index.ts'
import { backOff, done, type Outcome } from '../../runtime/index.ts'
import { parseAttachedVolumeName } from '../../volumes/attachment-names.ts'
import { attachmentsOnNode, isAttached, isBeingDeleted } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attachedVolumeName } from './node-state.ts'

type AttachedVolumes = NonNullable<NodeStatus['volumesAttached']>

export async function reportAttached(nodeName: ObjectKey, context: AttachingContext): Promise<Outcome> {
  const { client, nodes } = context
  const node = nodes.get(nodeName)
  if (!node) return done
  const { volumesAttached: reported = [] } = node.status ?? {}
  const attached = attachedVolumeNames(nodeName, context)
  const desired = mergeAttached(reported, attached)
  if (desired.map(({ name }) => name).join() === reported.map(({ name }) => name).join()) return done
  const { uid, resourceVersion } = node.metadata
  const body = { metadata: { uid, resourceVersion }, status: { volumesAttached: desired.length > 0 ? desired : null } }
  try {
    nodes.applyWriteResult(
      await client.patch(nodeKind, { name: nodeName }, { type: 'merge', body }, { subresource: 'status' }),
    )
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the node changed during the reconcile')
    throw error
  }
}

function attachedVolumeNames(
  nodeName: string,
  { attachments, volumes, nodes, detachingAttachments }: AttachingContext,
): Set<string> {
  const names = attachmentsOnNode(attachments, nodeName)
    .filter(
      (attachment) => isAttached(attachment) && !isBeingDeleted(attachment) && !detachingAttachments.has(attachment),
    )
    .map((attachment) => {
      const volume = volumes.get(attachment.spec.source.persistentVolumeName)
      return attachedVolumeName(attachment, volume, nodes.get(nodeName))
    })
  return new Set(names.filter((name) => name !== undefined))
}

/** Appends new volumes to the list, and keeps volumes of other plugins, because other controllers remove those. */
function mergeAttached(reported: AttachedVolumes, attached: ReadonlySet<string>): AttachedVolumes {
  const remaining = reported.filter(({ name }) => attached.has(name) || !parseAttachedVolumeName(name))
  const remainingNames = new Set(remaining.map(({ name }) => name))
  const added = [...attached].filter((name) => !remainingNames.has(name)).sort()
  return [...remaining, ...added.map((name) => ({ name, devicePath: '' }))]
}
