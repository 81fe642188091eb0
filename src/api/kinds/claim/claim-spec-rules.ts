// Validates a claim's spec, including specs in the claim templates of ephemeral volumes and stateful sets.
// claim-update-rules.ts validates changes.
import type { FieldErrors } from '../../field-errors.ts'
import { validateLabelSelector } from '../../meta.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { quantitySign } from '../../quantity.ts'
import { validateAccessModes } from '../shared/access-modes.ts'
import { validateMaxAmounts } from '../shared/amount-rules.ts'
import { amountOf, IO_RESOURCES, REQUESTS_AND_LIMITS, validateClaimIo } from '../shared/provisioned-io.ts'
import { validateDataSources } from './claim-data-source.ts'
import type { PersistentVolumeClaimSpec } from './claim-schema.ts'

export const VOLUME_MODES: readonly string[] = ['Block', 'Filesystem']

export interface ClaimSpecOptions {
  /** Path of the spec: `spec`, or the path in a template. */
  readonly field: string
  /** Whether the feature gate is enabled or the stored claim already has an attributes class. */
  readonly allowsAttributesClass: boolean
  readonly allowsAnyApiGroup?: boolean
  /** The resources of the stored claim, whose amounts may exceed the maximum. */
  readonly storedResources?: PersistentVolumeClaimSpec['resources']
}

export function validateClaimSpec(
  spec: PersistentVolumeClaimSpec,
  { field, allowsAttributesClass, allowsAnyApiGroup = false, storedResources }: ClaimSpecOptions,
  errors: FieldErrors,
): void {
  validateAccessModes(
    spec.accessModes,
    { field: `${field}.accessModes`, emptyDetail: 'at least 1 access mode is required' },
    errors,
  )
  if (spec.selector) validateLabelSelector(spec.selector, `${field}.selector`, errors)
  validateStorageRequest(spec, field, errors)
  validateClaimIo(spec.resources, `${field}.resources`, errors)
  for (const part of REQUESTS_AND_LIMITS) {
    const fieldOf = (name: string) => `${field}.resources.${part}.${name}`
    const names = ['storage', ...IO_RESOURCES]
    validateMaxAmounts(
      { amounts: spec.resources?.[part], names, storedAmounts: storedResources?.[part], fieldOf },
      errors,
    )
  }
  if (spec.storageClassName) {
    errors.invalidAll(
      `${field}.storageClassName`,
      spec.storageClassName,
      dns1123SubdomainProblems(spec.storageClassName),
    )
  }
  if (spec.volumeMode !== undefined && !VOLUME_MODES.includes(spec.volumeMode)) {
    errors.notSupported(`${field}.volumeMode`, spec.volumeMode, VOLUME_MODES)
  }
  validateDataSources(spec, { field, allowsAnyApiGroup }, errors)
  const className = spec.volumeAttributesClassName
  if (className && allowsAttributesClass) {
    errors.invalidAll(`${field}.volumeAttributesClassName`, className, dns1123SubdomainProblems(className))
  }
}

function validateStorageRequest(spec: PersistentVolumeClaimSpec, field: string, errors: FieldErrors): void {
  const storageField = `${field}.resources[storage]`
  const storage = amountOf(spec.resources?.requests, 'storage')
  if (storage === undefined) errors.required(storageField)
  else if (quantitySign(storage) <= 0) errors.invalid(storageField, storage, 'must be greater than zero')
}
