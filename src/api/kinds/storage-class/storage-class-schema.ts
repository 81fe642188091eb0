// The schema of StorageClass. The rules are in storage-class.ts.
import { boolean, type Infer, list, map, object, oneOf, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { topologySelectorTerm } from '../shared/references-schema.ts'

export const storageClass = object(
  'io.k8s.api.storage.v1.StorageClass',
  'A class of storage that claims can request, and its provisioner.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; an annotation marks the default class.'),
    provisioner: req(2, string, 'Provisioner of the volumes, such as a CSI driver; immutable.'),
    parameters: opt(3, map(string), 'Parameters for the provisioner; immutable.'),
    reclaimPolicy: ptr(
      4,
      oneOf('Recycle', 'Delete', 'Retain'),
      'Reclaim policy of provisioned volumes: Delete or Retain; immutable.',
      { default: 'Delete' },
    ),
    mountOptions: opt(5, list(string), 'Mount options of the volumes; not validated.'),
    allowVolumeExpansion: ptr(6, boolean, 'Whether claims of this class can be expanded.'),
    volumeBindingMode: ptr(
      7,
      oneOf('Immediate', 'WaitForFirstConsumer'),
      'Whether volumes are provisioned immediately or when a pod first uses the claim; immutable.',
      { default: 'Immediate' },
    ),
    allowedTopologies: opt(
      8,
      list(topologySelectorTerm),
      'Topologies in which volumes may be provisioned; empty allows all.',
    ),
  },
)

export type StorageClass = Infer<typeof storageClass>
