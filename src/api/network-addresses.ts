// Validates IP addresses and CIDRs and returns their IP family.
import { isIP } from 'node:net'
import type { FieldErrors } from './field-errors.ts'

export function validateIP(address: string, field: string, errors: FieldErrors): void {
  if (!isPlainIP(address)) {
    errors.invalid(field, address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')
  }
}

/** Validates a CIDR such as `10.9.8.0/24` or `2001:db8::/64`. */
export function validateCIDR(range: string, field: string, errors: FieldErrors): void {
  const [address = '', prefix = '', ...extraParts] = range.split('/')
  const bitsMax = isIP(address) === 6 ? 128 : 32
  const isValid = extraParts.length === 0 && isPlainIP(address) && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsMax
  if (!isValid) errors.invalid(field, range, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')
}

/** Returns the IP family, 4 or 6, of the text before the first slash, or 0 if it is not an IP address. */
export const ipFamilyOf = (text: string): number => isIP(text.split('/')[0] ?? '')

/** Returns whether the text is an IP address without a zone, which refers to an interface of one node (`fe80::1%eth0`). */
const isPlainIP = (address: string): boolean => isIP(address) !== 0 && !address.includes('%')
