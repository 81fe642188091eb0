import { describe, expect, it } from 'vitest'
import { FieldErrors } from './field-errors.ts'
import { ipFamilyOf, validateCIDR, validateIP } from './network-addresses.ts'

const isValid = (validate: (text: string, field: string, errors: FieldErrors) => void, text: string) => {
  const errors = new FieldErrors()
  validate(text, 'spec.address', errors)
  return !errors.hasErrors
}

describe('validateIP', () => {
  it.each(['10.0.0.1', '2001:db8::1'])('accepts %j', (text) => expect(isValid(validateIP, text)).toBe(true))

  it.each(['10.0.0.256', 'fe80::1%eth0', ''])('rejects %j', (text) => expect(isValid(validateIP, text)).toBe(false))
})

describe('validateCIDR', () => {
  it.each(['10.0.0.0/24', '2001:db8::/64'])('accepts %j', (text) => expect(isValid(validateCIDR, text)).toBe(true))

  it.each(['10.0.0.0/33', '2001:db8::/129', '10.0.0.0', '10.0.0.0/', '10.0.0.0/24/1', '10.0.0.0/-1'])(
    'rejects %j',
    (text) => expect(isValid(validateCIDR, text)).toBe(false),
  )
})

it('ipFamilyOf returns the family of an address or CIDR, and 0 for a host name', () => {
  expect(['10.0.0.0/24', '::1', 'localhost'].map(ipFamilyOf)).toEqual([4, 6, 0])
})
