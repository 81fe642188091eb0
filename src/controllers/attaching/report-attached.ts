// Updates status.volumesAttached of one node from its attachments. A node agent mounts a volume that must be attached only if
// the volume is on this list. reconcile-volume.ts also removes a volume from it, before it deletes the attachment.
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

export const haveSameNames = (a: AttachedVolumes, b: AttachedVolumes): boolean =>
  a.length === b.length && a.every(({ name }, index) => name === b[index]!.name)

export async function reportAttached(nodeName: ObjectKey, context: AttachingContext): Promise<Outcome> {
  const { client, nodes } = context
  const node = nodes.get(nodeName)
  if (!node) return done
  const { volumesAttached: reportedVolumes = [] } = node.status ?? {}
  const attachedNames = attachedVolumeNames(nodeName, context)
  const desiredVolumes = mergeAttached(reportedVolumes, attachedNames)
  if (haveSameNames(desiredVolumes, reportedVolumes)) return done
  const { uid, resourceVersion } = node.metadata
  const body = {
    metadata: { uid, resourceVersion },
    status: { volumesAttached: desiredVolumes.length > 0 ? desiredVolumes : null },
  }
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
  const names = new Set<string>()
  const node = nodes.get(nodeName)
  for (const attachment of attachmentsOnNode(attachments, nodeName)) {
    if (!isAttached(attachment) || isBeingDeleted(attachment) || detachingAttachments.has(attachment)) continue
    const name = attachedVolumeName(attachment, volumes.get(attachment.spec.source.persistentVolumeName), node)
    if (name !== undefined) names.add(name)
  }
  return names
}

/** Appends new volumes, removes CSI volumes that are no longer attached, and keeps volumes of other plugins. */
function mergeAttached(reportedVolumes: AttachedVolumes, attachedNames: ReadonlySet<string>): AttachedVolumes {
  const newNames = new Set(attachedNames)
  const keptVolumes = reportedVolumes.filter(
    ({ name }) => newNames.delete(name) || attachedNames.has(name) || !parseAttachedVolumeName(name),
  )
  for (const name of [...newNames].sort()) keptVolumes.push({ name, devicePath: '' })
  return keptVolumes
}
