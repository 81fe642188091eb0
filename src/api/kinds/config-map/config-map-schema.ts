// The schema of ConfigMap. The rules are in config-map.ts.
import { boolean, bytes, type Infer, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const configMap = object('io.k8s.api.core.v1.ConfigMap', 'Configuration data by key, as text or bytes.', {
  metadata: req(1, objectMeta, 'Standard object metadata.'),
  immutable: ptr(4, boolean, 'If true, data and binaryData are immutable; this cannot be undone.'),
  data: opt(2, map(string), 'Text values by key.'),
  binaryData: opt(3, map(bytes), 'Binary values in base64 by key; keys must not be in data as well.'),
})

export type ConfigMap = Infer<typeof configMap>
