// The schema of CSIStorageCapacity. The rules are in csi-storage-capacity.ts.
import { type Infer, object, ptr, quantity, req, string } from '../../schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'

export const csiStorageCapacity = object(
  'io.k8s.api.storage.v1.CSIStorageCapacity',
  'Available storage of one class in one topology segment.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; the name has no meaning.'),
    nodeTopology: ptr(2, labelSelector, 'Nodes that can access this storage: none if unset, all if empty; immutable.'),
    storageClassName: req(3, string, 'StorageClass that the capacity is for; immutable.'),
    capacity: ptr(4, quantity, 'Available capacity; unset if it is not known.'),
    maximumVolumeSize: ptr(
      5,
      quantity,
      'Size of the largest volume that can be created; unset if the driver does not report it.',
    ),
  },
)

export type CSIStorageCapacity = Infer<typeof csiStorageCapacity>
