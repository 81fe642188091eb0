// Keeps status.volumesAttached of one node: node agents mount only volumes on this list. reconcile-volume.ts removes a
// volume from the list before it deletes the attachment.
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
  const attached = attachedTo(nodeName, context)
  const desired = withOrderOf(reported, attached)
  if (desired.map(({ name }) => name).join() === reported.map(({ name }) => name).join()) return done
  const { uid, resourceVersion } = node.metadata
  const body = { metadata: { uid, resourceVersion }, status: { volumesAttached: desired.length > 0 ? desired : null } }
  try {
    nodes.learn(await client.patch(nodeKind, { name: nodeName }, { type: 'merge', body }, { subresource: 'status' }))
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the node changed during the reconcile')
    throw error
  }
}

function attachedTo(nodeName: string, { attachments, volumes, nodes, leaving }: AttachingContext): Set<string> {
  const names = attachmentsOnNode(attachments, nodeName)
    .filter((one) => isAttached(one) && !isBeingDeleted(one) && !leaving.has(one))
    .map((one) => attachedVolumeName(one, volumes.get(one.spec.source.persistentVolumeName ?? ''), nodes.get(nodeName)))
  return new Set(names.filter((name) => name !== undefined))
}

/** Appends new volumes and keeps volumes of other plugins, which their own controllers remove. */
function withOrderOf(reported: AttachedVolumes, attached: ReadonlySet<string>): AttachedVolumes {
  const kept = reported.filter(({ name }) => attached.has(name) || !parseAttachedVolumeName(name))
  const known = new Set(kept.map(({ name }) => name))
  const added = [...attached].filter((name) => !known.has(name)).sort()
  return [...kept, ...added.map((name) => ({ name, devicePath: '' }))]
}
