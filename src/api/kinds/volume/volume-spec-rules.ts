// Validates the spec of a volume and the inline spec of a VolumeAttachment. volume-source-rules.ts validates the source, and
// volume-update-rules.ts validates changes.
import { posix } from 'node:path'
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { quantitySign, quantityToBytes } from '../../quantity.ts'
import { VOLUME_MODES } from '../claim/claim-spec-rules.ts'
import { validateAccessModes } from '../shared/access-modes.ts'
import { validateMaxAmounts } from '../shared/amount-rules.ts'
import { validateNodeSelector } from '../shared/node-selector-rules.ts'
import { IO_RESOURCES, isIoResource, validateIoAmount } from '../shared/provisioned-io.ts'
import type { PersistentVolumeSpec } from './volume-schema.ts'
import { validateVolumeSource } from './volume-source-rules.ts'

export interface VolumeSpecOptions {
  readonly volumeName: string
  /** Whether the feature gate is enabled or the stored volume already has an attributes class. */
  readonly allowsAttributesClass: boolean
  /** Whether the feature gate is enabled or the stored volume already has iops or throughput. */
  readonly allowsIo: boolean
  /** The capacity of the stored volume, whose amounts may exceed the maximum. */
  readonly storedCapacity?: PersistentVolumeSpec['capacity']
}

export function validateVolumeSpec(
  spec: PersistentVolumeSpec,
  { volumeName, allowsAttributesClass, allowsIo, storedCapacity }: VolumeSpecOptions,
  errors: FieldErrors,
): void {
  validateAccessModes(spec.accessModes, { field: 'spec.accessModes' }, errors)
  validateCapacity(spec.capacity, { allowsIo }, errors)
  const names = ['storage', ...IO_RESOURCES]
  validateMaxAmounts(
    { amounts: spec.capacity, names, storedAmounts: storedCapacity, fieldOf: (name) => `spec.capacity[${name}]` },
    errors,
  )
  const policy = spec.persistentVolumeReclaimPolicy
  if (policy !== undefined && !RECLAIM_POLICIES.includes(policy)) {
    errors.notSupported('spec.persistentVolumeReclaimPolicy', policy, RECLAIM_POLICIES)
  }
  validateNodeAffinity(spec, errors)
  validateVolumeSource(spec, { field: 'spec', volumeName }, errors)
  if (spec.local && !spec.nodeAffinity) errors.required('spec.nodeAffinity', 'Local volume requires node affinity')
  if (spec.hostPath && posix.normalize(spec.hostPath.path) === '/' && policy === 'Recycle') {
    errors.forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")
  }
  if (spec.storageClassName) {
    errors.invalidAll('spec.storageClassName', spec.storageClassName, dns1123SubdomainProblems(spec.storageClassName))
  }
  if (spec.volumeMode !== undefined && !VOLUME_MODES.includes(spec.volumeMode)) {
    errors.notSupported('spec.volumeMode', spec.volumeMode, VOLUME_MODES)
  }
  if (allowsAttributesClass) validateAttributesClass(spec, errors)
}

/** Validates a volume without a PersistentVolume, which must have a CSI source. */
export function validateInlineVolumeSpec(spec: PersistentVolumeSpec, field: string, errors: FieldErrors): void {
  const notInlineMessage = 'may not be specified in the context of inline volumes'
  if (spec.claimRef) errors.forbidden(`${field}.claimRef`, notInlineMessage)
  if (Object.keys(spec.capacity ?? {}).length > 0) errors.forbidden(`${field}.capacity`, notInlineMessage)
  if (!spec.csi) errors.required(`${field}.csi`, 'has to be specified in the context of inline volumes')
  validateAccessModes(spec.accessModes, { field: `${field}.accessModes` }, errors)
  if (spec.persistentVolumeReclaimPolicy && spec.persistentVolumeReclaimPolicy !== 'Retain') {
    errors.forbidden(`${field}.persistentVolumeReclaimPolicy`, 'may only be Retain in the context of inline volumes')
  }
  if (spec.nodeAffinity) errors.forbidden(`${field}.nodeAffinity`, notInlineMessage)
  validateVolumeSource(spec, { field, volumeName: '' }, errors)
  if (spec.storageClassName) errors.forbidden(`${field}.storageClassName`, notInlineMessage)
  if (spec.volumeMode !== undefined && spec.volumeMode !== 'Filesystem') {
    errors.forbidden(
      `${field}.volumeMode`,
      'may not specify volumeMode other than Filesystem in the context of inline volumes',
    )
  }
}

const RECLAIM_POLICIES: readonly string[] = ['Delete', 'Recycle', 'Retain']

function validateCapacity(
  capacity: PersistentVolumeSpec['capacity'],
  { allowsIo }: { allowsIo: boolean },
  errors: FieldErrors,
): void {
  const names = Object.keys(capacity ?? {})
  const supportedNames = allowsIo ? ['storage', ...IO_RESOURCES] : ['storage']
  if (names.length === 0) errors.required('spec.capacity')
  if (!names.includes('storage') || names.some((name) => !supportedNames.includes(name))) {
    errors.notSupported('spec.capacity', capacity, supportedNames)
  }
  for (const [name, amount] of Object.entries(capacity ?? {})) {
    const field = `spec.capacity[${name}]`
    if (quantitySign(amount) < 0) {
      errors.invalid(field, Number(quantityToBytes(amount)), 'must be a valid resource quantity')
    }
    if (isIoResource(name)) validateIoAmount(capacity, name, field, errors)
    else if (quantitySign(amount) <= 0) errors.invalid(field, amount, 'must be greater than zero')
  }
}

function validateNodeAffinity({ nodeAffinity }: PersistentVolumeSpec, errors: FieldErrors): void {
  if (!nodeAffinity) return
  const field = 'spec.nodeAffinity.required'
  if (nodeAffinity.required) validateNodeSelector(nodeAffinity.required, field, errors)
  else errors.required(field, 'must specify required node constraints')
}

function validateAttributesClass(
  { volumeAttributesClassName: name, csi }: PersistentVolumeSpec,
  errors: FieldErrors,
): void {
  if (name === undefined) return
  const field = 'spec.volumeAttributesClassName'
  if (name === '') errors.required(field, 'an empty string is disallowed')
  else errors.invalidAll(field, name, dns1123SubdomainProblems(name))
  if (!csi) errors.required('spec.csi', 'has to be specified when using volumeAttributesClassName')
}
