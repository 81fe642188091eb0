// The fields of CSIStorageCapacity. Its rules are in csi-storage-capacity.ts.
import { type Infer, object, ptr, quantity, req, string } from '../../schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'

export const csiStorageCapacity = object(
  'io.k8s.api.storage.v1.CSIStorageCapacity',
  'How much storage of one class is free in one part of the cluster.',
  {
    metadata: req(1, objectMeta, 'Name and namespace; the name carries no meaning.'),
    nodeTopology: ptr(
      2,
      labelSelector,
      'Nodes that can reach this storage; unset for none, empty for all; cannot change.',
    ),
    storageClassName: req(3, string, 'Class that the free storage was asked about with; cannot change.'),
    capacity: ptr(4, quantity, 'How much is free; unset when that is not known.'),
    maximumVolumeSize: ptr(5, quantity, 'Largest volume that can be made; unset when the driver does not say.'),
  },
)

export type CSIStorageCapacity = Infer<typeof csiStorageCapacity>
