// The schema of ServiceAccount. The rules are in service-account.ts.
import { boolean, type Infer, list, object, opt, ptr, req } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { localObjectReference, objectReference } from '../shared/references-schema.ts'

export const serviceAccount = object(
  'io.k8s.api.core.v1.ServiceAccount',
  'An identity for programs that use the API.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    secrets: opt(2, list(objectReference), 'Secrets in the same namespace that pods of this account may use.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    imagePullSecrets: opt(
      3,
      list(localObjectReference),
      'Secrets in the same namespace for pulling the images of pods of this account.',
    ),
    automountServiceAccountToken: ptr(
      4,
      boolean,
      'Whether the token is mounted into pods of this account; a pod may override it.',
    ),
  },
)

export type ServiceAccount = Infer<typeof serviceAccount>
