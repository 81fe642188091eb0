// The schema of VolumeAttributesClass. The rules are in attributes-class.ts.
import { type Infer, map, object, opt, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const volumeAttributesClass = object(
  'io.k8s.api.storage.v1.VolumeAttributesClass',
  'Attributes of volumes, such as IOPS, that can be changed while a volume is in use.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; the class has no namespace.'),
    driverName: req(2, string, 'CSI driver that the parameters are for; immutable.'),
    parameters: opt(3, map(string), 'Driver-specific attributes, at least one; immutable.'),
  },
)

export type VolumeAttributesClass = Infer<typeof volumeAttributesClass>
