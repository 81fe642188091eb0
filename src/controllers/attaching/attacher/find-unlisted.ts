// Compares attachments with the volumes that the driver lists, to find those that were detached without the attacher,
// for example with the tools of the storage system (external-attacher's --reconcile-sync).
import type { ControllerCapability, DriverFacts } from '../../../csi/index.ts'
import { type Attachment, isAttached, isBeingDeleted } from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'
import { nodeIdOf, volumeOf } from './attachment-volume.ts'

export interface FindUnlistedOptions {
  /** Maximum number of volumes in one response. Default: the driver decides. */
  readonly entriesMax?: number
  isOwn(attachment: Attachment, context: AttacherContext): boolean
}

const NEEDED_CAPABILITIES: readonly ControllerCapability[] = [
  'PUBLISH_UNPUBLISH_VOLUME',
  'LIST_VOLUMES',
  'LIST_VOLUMES_PUBLISHED_NODES',
]

export const canListPublished = ({ controller }: DriverFacts): boolean =>
  NEEDED_CAPABILITIES.every((capability) => controller.has(capability))

/** Returns the names of attached attachments whose volumes the driver does not list as published on their nodes. */
export async function findUnlisted(
  context: AttacherContext,
  { entriesMax = 0, isOwn }: FindUnlistedOptions,
  signal: AbortSignal,
): Promise<string[]> {
  // Select the candidates before listing the volumes: a volume published during the listing may be missing from a page already
  // read.
  const candidates = context.attachments
    .list()
    .filter((attachment) => isOwn(attachment, context) && isAttached(attachment) && !isBeingDeleted(attachment))
  if (candidates.length === 0) return []
  const publishedNodes = await listPublishedNodes(context, entriesMax, signal)
  return candidates
    .filter((attachment) => !isListed(attachment, publishedNodes, context))
    .map(({ metadata }) => metadata.name)
}

/** Treats an attachment as listed if its volume or node is unknown, because it could not be published again. */
function isListed(
  attachment: Attachment,
  publishedNodes: ReadonlyMap<string, readonly string[]>,
  context: AttacherContext,
): boolean {
  const { csi } = volumeOf(attachment, context)?.spec ?? {}
  const nodeId = nodeIdOf(attachment.spec.nodeName, context)
  if (!csi || nodeId === undefined) return true
  return publishedNodes.get(csi.volumeHandle)?.includes(nodeId) ?? false
}

/** Returns the node IDs by volume. The timeout of driver calls applies to each page. */
async function listPublishedNodes(
  { driver, settings: { timeoutMs } }: AttacherContext,
  maxEntries: number,
  signal: AbortSignal,
): Promise<Map<string, readonly string[]>> {
  const publishedNodes = new Map<string, readonly string[]>()
  let startingToken = ''
  do {
    const { entries, nextToken } = await driver.controller.listVolumes(
      { maxEntries, startingToken },
      { timeoutMs, signal },
    )
    for (const { volume, status } of entries) {
      if (volume && status) publishedNodes.set(volume.volumeId, status.publishedNodeIds)
    }
    startingToken = nextToken
  } while (startingToken !== '')
  return publishedNodes
}
