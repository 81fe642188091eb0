// The topology labels of a node: one for each topology key that a CSI driver has registered in CSINode.
import type { CSINodeDriver } from '../api/kinds/csi-node/csi-node-schema.ts'

/** Returns the topology keys of the driver whose labels the node lacks. */
export const missingTopologyLabels = (
  { topologyKeys = [] }: Pick<CSINodeDriver, 'topologyKeys'>,
  labels: Readonly<Record<string, string>> = {},
): string[] => topologyKeys.filter((key) => !Object.hasOwn(labels, key))
