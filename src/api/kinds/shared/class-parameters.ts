// Validates the fields that StorageClass and VolumeAttributesClass share: the name of the provisioner or driver, and
// parameters.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'

const PARAMETERS_MAX = 512
const PARAMETERS_BYTES_MAX = 256 * 1024 // sum over all keys and values

/** Validates the lower-case form of the name of a provisioner or driver. */
export function validateProvisionerName(name: string, field: string, errors: FieldErrors): void {
  if (name === '') {
    errors.required(field)
    return
  }
  const lowerCaseName = name.toLowerCase()
  errors.invalidAll(field, lowerCaseName, qualifiedNameProblems(lowerCaseName))
}

export function validateParameters(
  parameters: Readonly<Record<string, string>> = {},
  { isRequired }: { isRequired: boolean },
  errors: FieldErrors,
): void {
  const field = 'parameters'
  const entries = Object.entries(parameters)
  if (entries.length > PARAMETERS_MAX) {
    errors.tooLong(field, PARAMETERS_MAX)
    return
  }
  let bytes = 0
  for (const [key, value] of entries) {
    if (key === '') errors.invalid(field, key, 'field can not be empty.')
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > PARAMETERS_BYTES_MAX) errors.tooLong(field, PARAMETERS_BYTES_MAX)
  if (isRequired && entries.length === 0) errors.required(field, 'must contain at least one key/value pair')
}
