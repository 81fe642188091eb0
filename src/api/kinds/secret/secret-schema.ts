// The schema of Secret. The rules are in secret.ts.
import { boolean, bytes, type Infer, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const secret = object(
  'io.k8s.api.core.v1.Secret',
  'Small confidential values, such as credentials for a storage driver.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    immutable: ptr(5, boolean, 'If true, data is immutable; this cannot be undone.'),
    data: opt(2, map(bytes), 'Values by key, in base64.'),
    stringData: opt(4, map(string), 'Values as plain text; write-only, merged into data.'),
    type: opt(3, string, 'Type of the secret; some types require certain keys; immutable.', {
      default: 'Opaque',
    }),
  },
)

export type Secret = Infer<typeof secret>
