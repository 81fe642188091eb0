// The fields of ServiceAccount. Its rules are in service-account.ts.
import { boolean, type Infer, list, object, opt, ptr, req } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { localObjectReference, objectReference } from '../shared/references-schema.ts'

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
