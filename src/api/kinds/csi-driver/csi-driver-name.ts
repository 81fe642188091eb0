// Validates a CSI driver's name: a DNS subdomain in upper or lower case, at most 63 bytes.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems } from '../../names.ts'

const DRIVER_NAME_BYTES_MAX = 63

export function validateCsiDriverName(name: string, field: string, errors: FieldErrors): void {
  if (name === '') {
    errors.required(field)
    return
  }
  if (Buffer.byteLength(name) > DRIVER_NAME_BYTES_MAX) errors.tooLong(field, DRIVER_NAME_BYTES_MAX)
  errors.invalidAll(field, name, dns1123SubdomainProblems(name.toLowerCase()))
}
