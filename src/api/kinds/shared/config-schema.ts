// What programs are given: secrets, settings, and the accounts they run as.
// Rules are in kinds/secret.ts, kinds/config-map.ts and kinds/service-account.ts.
import { boolean, bytes, type Infer, list, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from './meta-schema.ts'
import { localObjectReference, objectReference } from './references-schema.ts'

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

export const configMap = object('io.k8s.api.core.v1.ConfigMap', 'Settings by key, as text or bytes.', {
  metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
  immutable: ptr(4, boolean, 'If true, the content can never change again; only deleting is left.'),
  data: opt(2, map(string), 'Settings as text, by key.'),
  binaryData: opt(3, map(bytes), 'Settings as bytes in base64, by key; no key may also be in data.'),
})

export type ConfigMap = Infer<typeof configMap>

export const serviceAccount = object(
  'io.k8s.api.core.v1.ServiceAccount',
  'An identity for programs that talk to the API.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    secrets: opt(2, list(objectReference), 'Secrets of the same namespace that pods of this account may use.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    imagePullSecrets: opt(
      3,
      list(localObjectReference),
      'Secrets of the same namespace used to fetch images for pods of this account.',
    ),
    automountServiceAccountToken: ptr(
      4,
      boolean,
      'Whether pods of this account get its token mounted; a pod may say otherwise.',
    ),
  },
)

export type ServiceAccount = Infer<typeof serviceAccount>
