// The fields of StorageClass. Its rules are in storage-class.ts.
import { boolean, type Infer, list, map, object, oneOf, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { topologySelectorTerm } from '../shared/references-schema.ts'

export const storageClass = object(
  'io.k8s.api.storage.v1.StorageClass',
  'A kind of storage users can ask for by name, and who makes its volumes.',
  {
    metadata: req(1, objectMeta, 'Name of the class, and whether it is the default one (an annotation).'),
    provisioner: req(2, string, 'Who makes the volumes of this class, such as a CSI driver; cannot change.'),
    parameters: opt(3, map(string), 'What the provisioner is told about volumes of this class; cannot change.'),
    reclaimPolicy: ptr(
      4,
      oneOf('Recycle', 'Delete', 'Retain'),
      'What happens to a volume when its claim is gone: Delete or Retain; cannot change.',
      { default: 'Delete' },
    ),
    mountOptions: opt(5, list(string), 'Options for mounting the volumes of this class; not checked here.'),
    allowVolumeExpansion: ptr(6, boolean, 'Whether claims of this class may ask for more storage later.'),
    volumeBindingMode: ptr(
      7,
      oneOf('Immediate', 'WaitForFirstConsumer'),
      'Whether volumes are made at once or only when a pod needs them; cannot change.',
      { default: 'Immediate' },
    ),
    allowedTopologies: opt(
      8,
      list(topologySelectorTerm),
      'Parts of the cluster where volumes may be made; empty allows all.',
    ),
  },
)

export type StorageClass = Infer<typeof storageClass>
