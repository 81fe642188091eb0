// The schema of CertificateSigningRequest. The rules are in certificate-signing-request.ts.
import { bytes, type Infer, int32, list, map, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const certificateSigningRequestSpec = object(
  'io.k8s.api.certificates.v1.CertificateSigningRequestSpec',
  'The requested certificate and the user who requested it; immutable.',
  {
    request: req(1, bytes, 'PEM of the certification request (PKCS #10), in base64.'),
    signerName: req(7, string, 'The signer, such as kubernetes.io/kube-apiserver-client-kubelet.'),
    expirationSeconds: ptr(8, int32, 'Requested lifetime of the certificate; at least 600.'),
    usages: opt(5, list(string), 'Requested uses of the key, such as client auth.', { list: 'atomic' }),
    username: opt(2, string, 'User who created the request; set by the server.'),
    uid: opt(3, string, 'UID of the user; set by the server.'),
    groups: opt(4, list(string), 'Groups of the user; set by the server.', { list: 'atomic' }),
    extra: opt(6, map(list(string)), 'Further attributes of the user; set by the server.'),
  },
)

const certificateSigningRequestCondition = object(
  'io.k8s.api.certificates.v1.CertificateSigningRequestCondition',
  'A decision about a request.',
  {
    type: req(1, string, 'Approved, Denied, Failed or a type of the signer.'),
    status: req(6, string, 'True, False or Unknown; only True for Approved, Denied and Failed.'),
    reason: opt(2, string, 'Brief reason for the decision.'),
    message: opt(3, string, 'Details of the decision.'),
    lastUpdateTime: opt(4, time, 'When the condition was last written.'),
    lastTransitionTime: opt(5, time, 'When the status of the condition last changed.'),
  },
)

const certificateSigningRequestStatus = object(
  'io.k8s.api.certificates.v1.CertificateSigningRequestStatus',
  'The decision about a request and the certificate.',
  {
    conditions: opt(1, list(certificateSigningRequestCondition), 'Decisions, unique by type.', {
      list: 'map',
      keys: ['type'],
    }),
    certificate: opt(2, bytes, 'PEM of the issued certificate, in base64; set by the signer.'),
  },
)

export const certificateSigningRequest = object(
  'io.k8s.api.certificates.v1.CertificateSigningRequest',
  'A request for a certificate that an approver decides on and a signer issues.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: req(2, certificateSigningRequestSpec, 'The requested certificate.'),
    status: opt(3, certificateSigningRequestStatus, 'The decision and the certificate.'),
  },
)

export type CertificateSigningRequest = Infer<typeof certificateSigningRequest>
