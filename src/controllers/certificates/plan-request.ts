// Plans the next action for a CertificateSigningRequest: approve a certificate of a node if the requester has permission for
// it, sign or fail an approved request, or delete an old one. Pure.
import { type CertificationRequest, encodeDnsName, parseCertificationRequest } from '../../api/certification-request.ts'
import { decodePem, hasCondition } from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import {
  API_CLIENT_SIGNER,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
} from '../../api/kinds/certificate-signing-request/signer-name.ts'
import { nodeServingName } from '../../api/kinds/node/node-certificates.ts'

/** The subresource of certificatesigningrequests on which the requester needs the verb create. */
export type NodeCertificatePermission = 'selfnodeclient' | 'nodeclient' | 'selfnodeserver' | 'nodeserver'

export type RequestAction =
  | { readonly do: 'approve'; readonly message: string }
  | {
      readonly do: 'sign'
      readonly request: CertificationRequest
      readonly use: CertificateUse
      readonly canEncipherKeys: boolean
      readonly validity: Validity
    }
  | { readonly do: 'fail'; readonly message: string }
  | { readonly do: 'delete' }
  /** Plan again at `untilMs`, or earlier if the request changes. */
  | { readonly do: 'wait'; readonly untilMs: number }

export type CertificateUse = 'server' | 'client'

export interface Validity {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export interface PlanContext {
  readonly nowMs: number
  /** Returns whether the requester has the permission. */
  hasPermission(permission: NodeCertificatePermission): boolean
}

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS
const LIFETIME_MS_MAX = 365 * DAY_MS
const BACKDATE_MS = 5 * 60 * 1_000
/** A lifetime below this counts from now. A longer lifetime counts from the backdated start of the certificate. */
const SHORT_LIFETIME_MS = 8 * HOUR_MS
const PENDING_RETENTION_MS = DAY_MS
const FINISHED_RETENTION_MS = HOUR_MS
const APPROVAL_RECHECK_MS = 30_000

export function planRequest(csr: CertificateSigningRequest, context: PlanContext): RequestAction {
  const deleteAtMs = deletionTimeOf(csr)
  if (context.nowMs >= deleteAtMs) return { do: 'delete' }
  const wait = { do: 'wait', untilMs: deleteAtMs } as const
  if (csr.status?.certificate || hasCondition(csr, 'Denied') || hasCondition(csr, 'Failed')) return wait
  const { signerName } = csr.spec
  const use = USES[signerName]
  if (!use) return wait // another signer's request
  const request = parseCertificationRequest(decodePem(csr.spec.request)) // the API server rejects invalid requests
  if (!hasCondition(csr, 'Approved')) {
    // The permission may be granted later, which does not change the request.
    const recheckMs = Math.min(deleteAtMs, context.nowMs + APPROVAL_RECHECK_MS)
    return planApproval(csr, request, context) ?? { do: 'wait', untilMs: recheckMs }
  }
  const problem = shapeProblem(csr, request)
  if (problem) return { do: 'fail', message: problem }
  const canEncipherKeys = csr.spec.usages?.includes('key encipherment') === true
  return { do: 'sign', request, use, canEncipherKeys, validity: validityOf(csr, context.nowMs) }
}

function planApproval(
  csr: CertificateSigningRequest,
  request: CertificationRequest,
  { hasPermission }: PlanContext,
): RequestAction | undefined {
  if (shapeProblem(csr, request)) return undefined
  const isOwn = csr.spec.username === request.subject.commonName
  if (csr.spec.signerName === KUBELET_SERVING_SIGNER) {
    if (!hasOnlyServingName(request)) return undefined // an administrator must verify the addresses
    if (!(isOwn && hasPermission('selfnodeserver')) && !hasPermission('nodeserver')) return undefined
    return { do: 'approve', message: 'Auto approving kubelet serving certificate after SubjectAccessReview.' }
  }
  if (csr.spec.signerName !== KUBELET_CLIENT_SIGNER) return undefined
  if (isOwn && hasPermission('selfnodeclient')) {
    return { do: 'approve', message: 'Auto approving self kubelet client certificate after SubjectAccessReview.' }
  }
  if (hasPermission('nodeclient')) {
    return { do: 'approve', message: 'Auto approving kubelet client certificate after SubjectAccessReview.' }
  }
  return undefined
}

/**
 * Whether the certificate identifies only this node's agent, by a name that is the address of no host. A certificate with other
 * names could be used to impersonate another server, such as the API server.
 */
function hasOnlyServingName({ subject, alternativeNames }: CertificationRequest): boolean {
  const expectedName = encodeDnsName(nodeServingName(subject.commonName.replace(/^system:node:/, '')))
  return alternativeNames.length === 1 && Buffer.compare(alternativeNames[0]!.encoding, expectedName) === 0
}

/** The signers of this controller, and the use of their certificates. */
const USES: Readonly<Record<string, CertificateUse>> = {
  [API_CLIENT_SIGNER]: 'client',
  [KUBELET_CLIENT_SIGNER]: 'client',
  [KUBELET_SERVING_SIGNER]: 'server',
}

/** Returns the reason why the signer does not issue the requested certificate, or undefined if it does. */
function shapeProblem({ spec }: CertificateSigningRequest, request: CertificationRequest): string | undefined {
  const usages = spec.usages ?? []
  const extendedUsage = `${USES[spec.signerName]} auth`
  if (!usages.includes(extendedUsage)) return `usages must contain "${extendedUsage}"`
  const allowedUsages = ['digital signature', 'key encipherment', extendedUsage]
  const otherUsage = usages.find((usage) => !allowedUsages.includes(usage))
  if (otherUsage !== undefined)
    return `usages did not match ${JSON.stringify(allowedUsages)}: "${otherUsage}" is not allowed`
  if (spec.signerName === API_CLIENT_SIGNER) return undefined
  const { commonName, organizations } = request.subject
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes')
    return 'subject organization is not system:nodes'
  const nameProblem = alternativeNameProblem(spec.signerName, request)
  if (nameProblem) return nameProblem
  if (!commonName.startsWith('system:node:')) return 'subject common name does not begin with system:node:'
  if (!usages.includes('digital signature')) return 'usages must contain "digital signature"'
  return undefined
}

/** A client certificate of a node has no alternative names; a serving certificate has those at which clients reach the node. */
function alternativeNameProblem(signerName: string, { alternativeNames }: CertificationRequest): string | undefined {
  const kinds = alternativeNames.map(({ kind }) => kind)
  const allowedKinds = signerName === KUBELET_SERVING_SIGNER ? ['DNS', 'IP'] : []
  const otherKind = kinds.find((kind) => !allowedKinds.includes(kind))
  if (otherKind) return `${otherKind} subjectAltNames are not allowed`
  if (allowedKinds.length > 0 && kinds.length === 0) return 'DNS or IP subjectAltName is required'
  return undefined
}

function validityOf({ spec }: CertificateSigningRequest, nowMs: number): Validity {
  const requestedMs = spec.expirationSeconds === undefined ? LIFETIME_MS_MAX : spec.expirationSeconds * 1_000
  const lifetimeMs = Math.min(requestedMs, LIFETIME_MS_MAX)
  const endMs = nowMs + lifetimeMs
  return { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: lifetimeMs < SHORT_LIFETIME_MS ? endMs : endMs - BACKDATE_MS }
}

/**
 * Returns the time at which the request is deleted: an hour after the last decision if the request is issued, denied or failed,
 * otherwise a day after its creation.
 */
function deletionTimeOf({ metadata, status }: CertificateSigningRequest): number {
  const createdMs = Date.parse(metadata.creationTimestamp ?? '')
  const isFinished =
    status?.certificate || (status?.conditions ?? []).some(({ type }) => type === 'Denied' || type === 'Failed')
  if (!isFinished) return createdMs + PENDING_RETENTION_MS
  const decidedMs = (status?.conditions ?? []).map(({ lastUpdateTime }) => Date.parse(lastUpdateTime ?? ''))
  return Math.max(createdMs, ...decidedMs.filter((ms) => !Number.isNaN(ms))) + FINISHED_RETENTION_MS
}
