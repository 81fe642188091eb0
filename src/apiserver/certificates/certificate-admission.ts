// Checks the subject of new CertificateSigningRequests, and the permissions of users who approve or sign them, as the admission
// plugins CertificateSubjectRestriction, NodeRestriction, CertificateApproval and CertificateSigning of Kubernetes do. A
// bootstrap token that is bound to a node can request a certificate for this node only.
import { type CertificationRequest, parseCertificationRequest } from '../../api/certification-request.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import {
  certificateSigningRequestKind,
  decodePem,
} from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import {
  API_CLIENT_SIGNER,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
} from '../../api/kinds/certificate-signing-request/signer-name.ts'
import { API_SERVER_CLIENT_NAME } from '../../api/kinds/node/node-certificates.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission/index.ts'
import { NODE_USER_PREFIX, nodeNameOf } from '../node-authorizer/node-identity.ts'
import { type Authorizer, MASTERS_GROUP } from '../security/index.ts'
import { boundNodeOf } from './bootstrap-token-user.ts'

export const certificateAdmission = (authorizer: Authorizer): AdmissionPlugin => ({
  name: 'CertificateRights',
  mutate(request) {
    if (!isCertificateRequest(request)) return
    const message = request.operation === 'CREATE' ? checkCreate(request) : checkUpdate(request, authorizer)
    if (message) throw forbidden(request.resource, request.name, message)
  },
})

const isCertificateRequest = ({ resource }: AdmissionRequest): boolean =>
  resource.group === certificateSigningRequestKind.group && resource.plural === certificateSigningRequestKind.plural

/** Returns why the user cannot create the request, or undefined if the create is allowed. */
function checkCreate({ object, user }: AdmissionRequest): string | undefined {
  const { spec } = object as CertificateSigningRequest
  const { signerName } = spec
  const request = parse(spec.request)
  if (!request) return undefined // validation rejects it
  const { commonName, organizations } = request.subject
  if (signerName === API_CLIENT_SIGNER && organizations.includes(MASTERS_GROUP)) {
    return `use of ${API_CLIENT_SIGNER} signer with ${MASTERS_GROUP} group is not allowed`
  }
  if (signerName === API_CLIENT_SIGNER && commonName === API_SERVER_CLIENT_NAME) {
    return `the name ${API_SERVER_CLIENT_NAME} is reserved for the API server`
  }
  const isForNode = signerName === KUBELET_CLIENT_SIGNER || signerName === KUBELET_SERVING_SIGNER
  const nodeName = nodeNameOf(user)
  if (nodeName !== undefined && isForNode && commonName !== user.name) {
    return `can only create a node CSR with CN=${user.name}`
  }
  const boundNode = boundNodeOf(user)
  if (boundNode === undefined || (isForNode && commonName === `${NODE_USER_PREFIX}${boundNode}`)) return undefined
  return `the bootstrap token is for node ${JSON.stringify(boundNode)}: it can only request a certificate with CN=${NODE_USER_PREFIX}${boundNode}`
}

/** Returns why the user cannot approve or sign the request, or undefined if the update is allowed. */
function checkUpdate(
  { subresource, object, oldObject, user }: AdmissionRequest,
  authorizer: Authorizer,
): string | undefined {
  const isSigning = subresource === 'status' && hasStatusChanged(object, oldObject as CertificateSigningRequest)
  const verb = subresource === 'approval' ? 'approve' : isSigning ? 'sign' : undefined
  if (!verb) return undefined
  const { signerName } = (oldObject as CertificateSigningRequest).spec
  const isAllowed = (name: string) =>
    authorizer.authorize({ user, verb, group: 'certificates.k8s.io', version: '*', resource: 'signers', name }).allowed
  if (isAllowed(signerName) || isAllowed(`${signerName.split('/')[0]}/*`)) return undefined
  return `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`
}

const hasStatusChanged = (newRequest: CertificateSigningRequest, old: CertificateSigningRequest): boolean =>
  !jsonEquals(
    [newRequest.status?.certificate ?? '', (newRequest.status?.conditions ?? []) as unknown as JsonValue],
    [old.status?.certificate ?? '', (old.status?.conditions ?? []) as unknown as JsonValue],
  )

function parse(base64: string): CertificationRequest | undefined {
  try {
    return parseCertificationRequest(decodePem(base64))
  } catch {
    return undefined
  }
}
