// The fields of ConfigMap. Its rules are in config-map.ts.
import { boolean, bytes, type Infer, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const configMap = object('io.k8s.api.core.v1.ConfigMap', 'Settings by key, as text or bytes.', {
  metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
  immutable: ptr(4, boolean, 'If true, the content can never change again; only deleting is left.'),
  data: opt(2, map(string), 'Settings as text, by key.'),
  binaryData: opt(3, map(bytes), 'Settings as bytes in base64, by key; no key may also be in data.'),
})

export type ConfigMap = Infer<typeof configMap>
