// The fields of VolumeAttributesClass. Its rules are in attributes-class.ts.
import { type Infer, map, object, opt, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const volumeAttributesClass = object(
  'io.k8s.api.storage.v1.VolumeAttributesClass',
  'Attributes of volumes, such as speed, that can change while a volume is in use.',
  {
    metadata: req(1, objectMeta, 'Name of the class; it belongs to no namespace.'),
    driverName: req(2, string, 'The CSI driver that understands the parameters; cannot change.'),
    parameters: opt(3, map(string), 'Attributes as the driver understands them, at least one; cannot change.'),
  },
)

export type VolumeAttributesClass = Infer<typeof volumeAttributesClass>
