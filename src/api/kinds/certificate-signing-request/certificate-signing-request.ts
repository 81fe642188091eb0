// Declares CertificateSigningRequest. The spec is immutable; the decision changes through /approval, the certificate through
// /status. The admission plugins certificate-requester.ts and certificate-admission.ts record the requester and check
// permissions on signers.
import { X509Certificate } from 'node:crypto'
import { timestamp } from '../../../base/timestamps.ts'
import { parseCertificationRequest } from '../../certification-request.ts'
import { ageColumn, nameColumn, shortDuration } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { type JsonValue, jsonEquals } from '../../json-value.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { type CertificateSigningRequest, certificateSigningRequest } from './certificate-signing-request-schema.ts'
import { validateSignerName } from './signer-name.ts'

type Condition = NonNullable<NonNullable<CertificateSigningRequest['status']>['conditions']>[number]

export const certificateSigningRequestKind = defineKind<CertificateSigningRequest>({
  group: 'certificates.k8s.io',
  versions: ['v1'],
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  singular: 'certificatesigningrequest',
  shortNames: ['csr'],
  namespaced: false,
  type: certificateSigningRequest,

  nameErrors: pathSegmentProblems,
  prepareForUpdate(next, old) {
    next.spec = old.spec
  },
  validate(request, errors, _context, old) {
    if (!old) validateSpec(request.spec, errors) // immutable
    validateConditions(conditionsOf(request), errors)
    validateCertificate(request.status?.certificate, errors)
  },
  validateUpdate: (next, old, errors) => validateFinalConditionsKept(next, old, errors),
  status: {
    acceptsMetadata: true,
    prepare: (next, old, context) => setConditionTimes(next, old, context),
    validate(next, old, errors) {
      validateConditions(conditionsOf(next), errors)
      validateCertificate(next.status?.certificate, errors)
      validateFinalConditionsKept(next, old, errors)
      for (const type of DECISIONS) {
        if (jsonEquals(conditionsOfType(next, type), conditionsOfType(old, type))) continue
        const isAdded = conditionsOfType(next, type).length > conditionsOfType(old, type).length
        const isRemoved = conditionsOfType(next, type).length < conditionsOfType(old, type).length
        if (isRemoved) continue // reported above
        errors.forbidden(
          'status.conditions',
          `updates may not ${isAdded ? 'add' : 'modify'} a condition of type "${type}"`,
        )
      }
      const oldCertificate = old.status?.certificate
      if (oldCertificate && next.status?.certificate !== oldCertificate) {
        errors.forbidden('status.certificate', 'updates may not modify existing certificate content')
      }
    },
  },
  approval: {
    prepare: (next, old, context) => setConditionTimes(next, old, context),
    validate(next, old, errors) {
      validateConditions(conditionsOf(next), errors)
      validateFinalConditionsKept(next, old, errors)
    },
  },

  selectableFields: { 'spec.signerName': ({ spec }) => spec.signerName },
  columns: [
    nameColumn,
    ageColumn,
    {
      name: 'SignerName',
      type: 'string',
      doc: 'The requested signer.',
      cell: ({ spec }) => spec.signerName || '<none>',
    },
    {
      name: 'Requestor',
      type: 'string',
      doc: 'User who created the request.',
      cell: ({ spec }) => spec.username ?? '',
    },
    {
      name: 'RequestedDuration',
      type: 'string',
      doc: 'Requested lifetime of the certificate.',
      cell: ({ spec }) =>
        spec.expirationSeconds === undefined ? '<none>' : shortDuration(spec.expirationSeconds * 1_000),
    },
    { name: 'Condition', type: 'string', doc: 'The decision about the request.', cell: describeConditions },
  ],
  deleteReturnsObject: false,
})

const DECISIONS = ['Approved', 'Denied']
/** Conditions that are final: their status is always True, and they are never removed. */
const FINAL_CONDITIONS = [...DECISIONS, 'Failed']
const USAGES = new Set([
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
])
const EXPIRATION_SECONDS_MIN = 600
const STATUSES = ['False', 'True', 'Unknown']

const conditionsOf = ({ status }: CertificateSigningRequest): readonly Condition[] => status?.conditions ?? []
const conditionsOfType = (request: CertificateSigningRequest, type: string): JsonValue[] =>
  conditionsOf(request).filter((condition) => condition.type === type) as unknown as JsonValue[]

/** Returns whether the request has a condition of this type. */
export const hasCondition = (request: CertificateSigningRequest, type: string): boolean =>
  conditionsOf(request).some((condition) => condition.type === type)

/** Decodes a field of the request that contains PEM in base64. */
export const decodePem = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1')

function validateSpec(spec: CertificateSigningRequest['spec'], errors: FieldErrors): void {
  const { request, usages = [], signerName, expirationSeconds } = spec
  try {
    parseCertificationRequest(decodePem(request))
  } catch (error) {
    errors.invalid('spec.request', request, (error as Error).message)
  }
  if (usages.length === 0) errors.required('spec.usages')
  const seenUsages = new Set<string>()
  usages.forEach((usage, index) => {
    if (!USAGES.has(usage)) errors.notSupported(`spec.usages[${index}]`, usage, [...USAGES])
    if (seenUsages.has(usage)) errors.duplicate(`spec.usages[${index}]`, usage)
    seenUsages.add(usage)
  })
  validateSignerName(signerName, 'spec.signerName', errors)
  if (expirationSeconds !== undefined && expirationSeconds < EXPIRATION_SECONDS_MIN) {
    const message = `may not specify a duration less than ${EXPIRATION_SECONDS_MIN} seconds (10 minutes)`
    errors.invalid('spec.expirationSeconds', expirationSeconds, message)
  }
}

function validateConditions(conditions: readonly Condition[], errors: FieldErrors): void {
  const seenTypes = new Set<string>()
  conditions.forEach(({ type, status }, index) => {
    const field = `status.conditions[${index}]`
    if (type === '') errors.required(`${field}.type`)
    const allowedStatuses = FINAL_CONDITIONS.includes(type) ? ['True'] : STATUSES
    if (status === '') errors.required(`${field}.status`)
    else if (!allowedStatuses.includes(status)) errors.notSupported(`${field}.status`, status, allowedStatuses)
    if (seenTypes.has(type)) errors.duplicate(`${field}.type`, type)
    seenTypes.add(type)
  })
  if (DECISIONS.every((type) => seenTypes.has(type))) {
    const message = 'Approved and Denied conditions are mutually exclusive'
    errors.invalid('status.conditions', conditions.at(-1)!.type, message)
  }
}

function validateCertificate(base64: string | undefined, errors: FieldErrors): void {
  if (!base64) return
  const blocks = [...decodePem(base64).matchAll(/-----BEGIN ([^-]*)-----[\s\S]*?-----END \1-----/g)]
  const invalid = (message: string) => errors.invalid('status.certificate', '<certificate data>', message)
  if (blocks.length === 0) invalid('must contain at least one CERTIFICATE PEM block')
  for (const [pem, label] of blocks) {
    if (label !== 'CERTIFICATE') invalid(`only CERTIFICATE PEM blocks are allowed, found "${label}"`)
    else if (!isCertificate(pem)) invalid('a CERTIFICATE PEM block is malformed')
  }
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

/** Rejects the removal of a final condition. */
function validateFinalConditionsKept(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest,
  errors: FieldErrors,
): void {
  for (const type of FINAL_CONDITIONS) {
    if (hasCondition(next, type) || !hasCondition(old, type)) continue
    errors.forbidden('status.conditions', `updates may not remove a condition of type "${type}"`)
  }
}

/** Sets missing times. A condition keeps its transition time while its status does not change. */
function setConditionTimes(
  next: CertificateSigningRequest,
  old: CertificateSigningRequest,
  { nowMs }: RuleContext,
): void {
  if (!next.status?.conditions) return
  const conditions = next.status.conditions.map((condition) => {
    const { type, status, lastUpdateTime = timestamp(nowMs) } = condition
    const previousCondition = conditionsOf(old).find((stored) => stored.type === type && stored.status === status)
    const { lastTransitionTime = previousCondition?.lastTransitionTime ?? timestamp(nowMs) } = condition
    return { ...condition, lastUpdateTime, lastTransitionTime }
  })
  next.status = { ...next.status, conditions }
}

function describeConditions(request: CertificateSigningRequest): string {
  const decision = ['Denied', 'Approved'].find((type) => hasCondition(request, type)) ?? 'Pending'
  const failedSuffix = hasCondition(request, 'Failed') ? ',Failed' : ''
  return `${decision}${failedSuffix}${request.status?.certificate ? ',Issued' : ''}`
}
