// Reads a node group from a file: the template Node, optionally its CSINode, and the CSIStorageCapacity objects of an empty node.
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { NodeGroup } from '../../diagnosis/index.ts'
import { type DecodeContext, decodeManifest } from './decode-manifest.ts'
import { readManifests } from './read-manifests.ts'

const KINDS = [nodeKind.kind, csiNodeKind.kind, csiStorageCapacityKind.kind]

export async function readNodeGroup(file: string, context: DecodeContext): Promise<NodeGroup> {
  const manifests = await readManifests([file])
  const unexpected = manifests.find(({ kind }) => !KINDS.includes(kind))
  if (unexpected)
    throw new UsageError(
      `${unexpected.source}: a node group consists of Node, CSINode and CSIStorageCapacity objects, not ${unexpected.kind}`,
    )
  const selectKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
  const [node, secondNode] = selectKind(nodeKind.kind)
  if (!node)
    throw new UsageError(`${file} has no Node: a node group has one, with the labels and resources of its nodes`)
  if (secondNode) throw new UsageError(`${secondNode.source}: a node group has one Node, and this is the second`)
  const [csiNode, secondCsiNode] = selectKind(csiNodeKind.kind)
  if (secondCsiNode)
    throw new UsageError(`${secondCsiNode.source}: a node group has at most one CSINode, and this is the second`)
  const decodedNode = decodeManifest(nodeKind, node, context)
  return {
    name: decodedNode.metadata.name,
    node: decodedNode,
    csiNode: csiNode && decodeManifest(csiNodeKind, csiNode, context),
    capacities: selectKind(csiStorageCapacityKind.kind).map((manifest, index) =>
      decodeManifest(csiStorageCapacityKind, withName(manifest, `${decodedNode.metadata.name}-${index + 1}`), context),
    ),
  }
}

/** Sets a default name, because capacity objects of a group may omit it. */
function withName<M extends { readonly value: Readonly<Record<string, unknown>> }>(manifest: M, name: string): M {
  const { metadata } = manifest.value as { metadata?: object }
  return { ...manifest, value: { ...manifest.value, metadata: { name, ...metadata } } }
}
