// Records the user who creates a CertificateSigningRequest in its spec, so that approvers can decide on the request.
import { certificateSigningRequestKind } from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import type { AdmissionPlugin } from './admission.ts'

export const certificateRequester: AdmissionPlugin = {
  name: 'CertificateRequester',
  mutate({ operation, resource, object, user }) {
    if (operation !== 'CREATE' || resource.kind.kind !== certificateSigningRequestKind.kind) return
    const { spec } = object as CertificateSigningRequest
    const { username: _, uid: __, groups: ___, extra: ____, ...requestedSpec } = spec
    const extra = Object.fromEntries(Object.entries(user.extra ?? {}).map(([key, values]) => [key, [...values]]))
    object.spec = {
      ...requestedSpec,
      username: user.name,
      groups: [...user.groups],
      ...(user.uid ? { uid: user.uid } : {}),
      ...(Object.keys(extra).length > 0 ? { extra } : {}),
    }
  },
}
