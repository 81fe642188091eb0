// Normalizes, filters by feature gate and validates the resources `iops` and `throughput` of claims and volumes. Throughput
// is stored in bytes/s, so that amounts can be compared and added. claim-update-rules.ts validates changes.
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities, isIntegerQuantity, quantitySign } from '../../quantity.ts'
import { normalizeThroughput } from '../../throughput.ts'
import type { PersistentVolumeClaimSpec } from '../claim/claim-schema.ts'

export type ResourceList = Record<string, string>

export const IO_RESOURCES = ['iops', 'throughput'] as const
export const REQUESTS_AND_LIMITS = ['requests', 'limits'] as const

export const isIoResource = (name: string): boolean => (IO_RESOURCES as readonly string[]).includes(name)

/** Returns the amount of a resource, or undefined if the list does not contain it. */
export const amountOf = (list: ResourceList | undefined, name: string): string | undefined =>
  list && Object.hasOwn(list, name) ? list[name] : undefined

/** Returns the list with throughput in bytes/s. */
export function withIoInBytes<L extends ResourceList | undefined>(list: L): L {
  const throughput = amountOf(list, 'throughput')
  return throughput === undefined ? list : { ...list, throughput: normalizeThroughput(throughput) }
}

/** Returns the spec of a claim with throughput in bytes/s. */
export function withClaimIoInBytes(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  if (!spec.resources) return spec
  const resources = { ...spec.resources }
  for (const part of REQUESTS_AND_LIMITS) if (resources[part]) resources[part] = withIoInBytes(resources[part])
  return { ...spec, resources }
}

/** Drops IO resources from a claim's spec, except those that the stored claim already has. */
export function withoutNewClaimIo(
  spec: PersistentVolumeClaimSpec,
  stored: PersistentVolumeClaimSpec | undefined,
): PersistentVolumeClaimSpec {
  if (!spec.resources) return spec
  const resources = { ...spec.resources }
  for (const part of REQUESTS_AND_LIMITS) {
    const remainingAmounts = withoutNewIo(resources[part], stored?.resources?.[part])
    if (remainingAmounts && Object.keys(remainingAmounts).length > 0) resources[part] = remainingAmounts
    else delete resources[part]
  }
  return { ...spec, resources }
}

/** Drops IO resources from a list, except those that the stored list already has. */
export function withoutNewIo<L extends ResourceList | undefined>(list: L, stored: ResourceList | undefined): L {
  if (!list) return list
  const remainingAmounts = Object.entries(list).filter(
    ([name]) => !isIoResource(name) || amountOf(stored, name) !== undefined,
  )
  return Object.fromEntries(remainingAmounts) as L
}

/** Returns the IO resources that a list has and the stored list does not have. */
export const newIoAmounts = (list: ResourceList | undefined, stored: ResourceList | undefined): [string, string][] =>
  IO_RESOURCES.flatMap((name): [string, string][] => {
    const amount = amountOf(list, name)
    return amount === undefined || amountOf(stored, name) !== undefined ? [] : [[name, amount]]
  })

export function validateClaimIo(
  resources: PersistentVolumeClaimSpec['resources'],
  field: string,
  errors: FieldErrors,
): void {
  for (const name of IO_RESOURCES) {
    for (const part of REQUESTS_AND_LIMITS)
      validateIoAmount(resources?.[part], name, `${field}.${part}.${name}`, errors)
    const request = amountOf(resources?.requests, name)
    const limit = amountOf(resources?.limits, name)
    if (request !== undefined && limit !== undefined && compareQuantities(request, limit) > 0) {
      errors.invalid(`${field}.requests.${name}`, request, `must be less than or equal to ${name} limit of ${limit}`)
    }
  }
}

export function validateIoAmount(
  list: ResourceList | undefined,
  name: string,
  field: string,
  errors: FieldErrors,
): void {
  const amount = amountOf(list, name)
  if (amount === undefined) return
  if (quantitySign(amount) <= 0) errors.invalid(field, amount, 'must be greater than zero')
  else if (!isIntegerQuantity(amount)) errors.invalid(field, amount, 'must be an integer')
}
