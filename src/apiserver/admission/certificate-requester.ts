// Records who created a CertificateSigningRequest, so that approvers can decide on it.
import { certificateSigningRequestKind } from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import type { AdmissionPlugin } from './admission.ts'

export const certificateRequester: AdmissionPlugin = {
  name: 'CertificateRequester',
  mutate({ operation, resource, object, user }) {
    if (operation !== 'CREATE' || resource.kind.kind !== certificateSigningRequestKind.kind) return
    const { spec } = object as CertificateSigningRequest
    const { username: _, uid: __, groups: ___, extra: ____, ...requested } = spec
    const extra = Object.fromEntries(Object.entries(user.extra ?? {}).map(([key, values]) => [key, [...values]]))
    object.spec = {
      ...requested,
      username: user.name,
      groups: [...user.groups],
      ...(user.uid ? { uid: user.uid } : {}),
      ...(Object.keys(extra).length > 0 ? { extra } : {}),
    }
  },
}
