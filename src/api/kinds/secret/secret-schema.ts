// The fields of Secret. Its rules are in secret.ts.
import { boolean, bytes, type Infer, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const secret = object(
  'io.k8s.api.core.v1.Secret',
  'Small confidential values, such as credentials for a storage driver.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    immutable: ptr(5, boolean, 'If true, the values can never change again; only deleting is left.'),
    data: opt(2, map(bytes), 'The values by key, as base64.'),
    stringData: opt(4, map(string), 'Values given as plain text; stored in data and never shown here.'),
    type: opt(3, string, 'What the secret is for; some types promise certain keys. Cannot change.', {
      default: 'Opaque',
    }),
  },
)

export type Secret = Infer<typeof secret>
